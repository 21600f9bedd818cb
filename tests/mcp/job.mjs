// The job of `job.json`, which calls every action, for clients that call tools in whatever way.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const job = JSON.parse(await readFile(new URL('job.json', import.meta.url), 'utf8'));

/**
 * Walks the job; answers every tool and action that succeeded, and those of users (`users`), which refuse a key. A user's job
 * is given what a key does not need. A step with `counts` is refused here, because DNS proves nothing, and is one of the action all the same.
 */
export async function runJob(call, users) {
  const kept = { ...users };
  const called = new Set();
  for (const step of job) {
    const text = JSON.stringify(step.arguments).replace(/\$(\w+)/g, (_, name) => kept[name]);
    const refused = step.users && !users ? 'forbidden' : step.refused;
    const result = await call({ name: step.tool, arguments: JSON.parse(text) });
    const answer = result.structuredContent;
    assert.equal(Boolean(result.isError), Boolean(refused), `${step.tool} ${text}: ${JSON.stringify(answer)}`);
    assert.deepEqual(JSON.parse(result.content[0].text), answer);
    if (refused) assert.equal(answer.code, refused);
    if (!refused || step.users || step.counts) called.add(`${step.tool} ${step.arguments.action ?? ''}`);
    if (refused) continue;
    for (const [name, value] of Object.entries(step.expect ?? {})) assert.deepEqual(answer[name], value);
    for (const [name, path] of Object.entries(step.keep ?? {})) {
      kept[name] = path.split('.').reduce((value, part) => value[part], answer);
    }
  }
  return [...called].sort();
}

/** Every tool and action that the server lists. */
export function listedActions(tools) {
  const actions = (tool) => tool.inputSchema.properties.action?.enum ?? [''];
  return tools.flatMap((tool) => actions(tool).map((action) => `${tool.name} ${action}`)).sort();
}
