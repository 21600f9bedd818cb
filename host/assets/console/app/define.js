// The statement of an action: tried on a copy, then defined with the version that was read.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { Raw, read, write } from 'app/exact.js';
import { Editor } from 'app/editor.js';
import { refuse, useDraft, useRun } from 'app/load.js';
import { Button, Fault, Field, Text, count, html } from 'app/ui.js';

/** `action` is what there is, or nothing for a new one; `version` is what the change is made on top of. */
export function Define({ project, name, action, version, schema, onDone }) {
  const place = `${project}:action:${action?.name ?? ''}`;
  const had = action && Object.keys(action.defaults).length ? write(action.defaults) : '';
  const [sql, setSql, dropSql] = useDraft(`${place}:sql`, action?.sql ?? '');
  const [note, setNote, dropNote] = useDraft(`${place}:note`, action?.note ?? '');
  const [defaults, setDefaults, dropDefaults] = useDraft(`${place}:defaults`, had);
  const [base] = useDraft(`${place}:base`, version);
  const [tried, setTried] = useState(null);
  const [wrong, setWrong] = useState('');
  const body = () => {
    setWrong('');
    try {
      if (defaults.trim() && typeof read(defaults) !== 'object') throw new Error();
    } catch {
      setWrong('This is no JSON object, such as {"most": 20}.');
      throw refuse('The defaults are no JSON object');
    }
    return { actions: [{ name, sql, note: note || undefined, defaults: defaults.trim() ? new Raw(defaults) : undefined, expected_version: base }] };
  };
  const attempt = useRun(async () => {
    setTried(null);
    setTried({ sql, answer: await call('define_actions', { project, query: { dry_run: true }, body: body() }) });
  });
  const define = useRun(async () => {
    const { actions } = await call('define_actions', { project, body: body() });
    for (const drop of [dropSql, dropNote, dropDefaults]) drop();
    setTried(null);
    await onDone(actions.find((one) => one.name === name));
  });
  const problem = define.problem ?? attempt.problem;
  const inner = problem?.errors?.[0];
  return html`
    <${Editor} label="SQL" value=${sql} onChange=${setSql} onRun=${attempt.run} kind="sql" schema=${schema} needs="editor" fault=${problem?.position ?? inner?.position} placeholder="SELECT id, text FROM notes ORDER BY id DESC LIMIT 20" hint="One statement; :name is a parameter. :svc_user_id is who is signed in. Ctrl+Enter tries it." />
    <div class="pair"><${Field} label="Note" value=${note} onInput=${setNote} maxlength="1000" needs="editor" autocomplete="off" hint="What it does: agents read this." />
    <${Field} label="Defaults" value=${defaults} onInput=${setDefaults} needs="editor" autocomplete="off" class="code" error=${wrong} hint="JSON, for parameters that a call may leave out." placeholder=${'{"most": 20}'} /></div>
    <${Fault} of=${problem}>${problem?.code === 'action_conflict' && html`<p>Version ${problem.found} is there now, and you began with ${problem.expected}. What you typed is kept.</p>`}</${Fault}>
    ${tried && html`<div class="card"><p>${tried.answer.status === 'already_applied' ? 'This is what the action has already.' : 'It would work.'}${tried.answer.broken_actions.length ? ` ${count(tried.answer.broken_actions.length, 'action')} would not:` : ''}</p>
      ${tried.answer.broken_actions.length > 0 && html`<ul>${tried.answer.broken_actions.map((one) => html`<li key=${one.name}><code>${one.name}</code>: <${Text} of=${one.detail} /></li>`)}</ul>`}</div>`}
    <div class="actions"><${Button} needs="editor" busy=${attempt.busy} off=${!sql.trim() || !name} why="Write the statement first." onClick=${attempt.run}>Try</${Button}><${Button} class="main" needs="editor" busy=${define.busy} off=${!sql.trim() || !name} why="Write the statement first." onClick=${define.run}>Define</${Button}></div>`;
}
