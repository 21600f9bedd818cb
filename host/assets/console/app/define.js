// The statement of an action: tried on a copy, then defined with the version that was read.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { Raw, read, write } from 'app/exact.js';
import { Editor } from 'app/editor.js';
import { dropDraft, keepDraft, readDraft } from 'app/session.js';
import { refuse, useDraft, useRun } from 'app/load.js';
import { Button, Fault, Field, Text, count, html } from 'app/ui.js';

/** Reads a field of JSON; nothing, if it is empty. Throws what is wrong with it. */
function objectOf(text, what) {
  if (!text.trim()) return undefined;
  let value;
  try {
    value = read(text);
  } catch {
    value = undefined;
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw refuse(`The ${what} are no JSON object`);
  return new Raw(text);
}

/**
 * `action` is what there is, or nothing for a new one; `version` is what the change is made on top of. A new one whose name the
 * reader may still change keeps what is typed for whatever name it gets.
 */
export function Define({ project, name, action, version, schema, isNameFree, onDone }) {
  const place = `${project}:action:${isNameFree ? '' : name}`;
  const had = action && Object.keys(action.defaults).length ? write(action.defaults) : '';
  const ruled = action?.files ? write(action.files) : '';
  const [sql, setSql, dropSql] = useDraft(`${place}:sql`, action?.sql ?? '');
  const [note, setNote, dropNote] = useDraft(`${place}:note`, action?.note ?? '');
  const [defaults, setDefaults, dropDefaults] = useDraft(`${place}:defaults`, had);
  const [rules, setRules, dropRules] = useDraft(`${place}:files`, ruled);
  // Typed text belongs to the version of then, whatever a reload finds.
  const isDrafted = sql !== (action?.sql ?? '') || note !== (action?.note ?? '') || defaults !== had || rules !== ruled;
  const [base, setBase] = useState(() => (isDrafted && readDraft(`${place}:base`)) || version);
  const [tried, setTried] = useState(null);
  const [wrong, setWrong] = useState({});
  const begin = (from) => {
    setBase(from);
    keepDraft(`${place}:base`, from);
  };
  const type = (set) => (text) => {
    keepDraft(`${place}:base`, base);
    set(text);
  };
  const takesFiles = sql.includes(':svc_file') || ruled !== '';
  const parsed = (field, text, what) => {
    try {
      return objectOf(text, what);
    } catch (problem) {
      setWrong({ [field]: 'This is no JSON object.' });
      throw problem;
    }
  };
  const body = () => {
    setWrong({});
    const files = takesFiles ? parsed('rules', rules, 'rules of files') : undefined;
    return { actions: [{ name, sql, note: note || undefined, defaults: parsed('defaults', defaults, 'defaults'), files, expected_version: base }] };
  };
  const attempt = useRun(async () => {
    setTried(null);
    setTried({ sql, answer: await call('define_actions', { project, query: { dry_run: true }, body: body() }) });
  });
  const define = useRun(async () => {
    const { actions } = await call('define_actions', { project, body: body() });
    for (const drop of [dropSql, dropNote, dropDefaults, dropRules]) drop();
    dropDraft(`${place}:base`);
    setTried(null);
    await onDone(actions.find((one) => one.name === name));
  });
  const problem = define.problem ?? attempt.problem;
  const inner = problem?.errors?.[0];
  return html`
    <${Editor} label="SQL" value=${sql} onChange=${type(setSql)} onRun=${attempt.run} kind="sql" schema=${schema} needs="editor" fault=${problem?.position ?? inner?.position} placeholder="SELECT id, text FROM notes ORDER BY id DESC LIMIT 20" hint="One statement; :name is a parameter. :svc_user_id is who is signed in. Ctrl+Enter tries it." />
    <div class="pair"><${Field} label="Note" value=${note} onInput=${type(setNote)} maxlength="1000" needs="editor" autocomplete="off" hint="What it does: agents read this." />
    <${Field} label="Defaults" value=${defaults} onInput=${type(setDefaults)} needs="editor" autocomplete="off" class="code" error=${wrong.defaults} hint="JSON, for parameters that a call may leave out." placeholder=${'{"most": 20}'} /></div>
    ${takesFiles && html`<${Field} label="Files" value=${rules} onInput=${type(setRules)} needs="editor" autocomplete="off" class="code" error=${wrong.rules} hint="JSON: the rules for files that visitors bring by this action." placeholder=${'{"types": ["image/*"], "max_bytes": 5000000}'} />`}
    <${Fault} of=${problem}>${problem?.code === 'action_conflict' && html`<p>Version ${problem.found} is there now, and you began with ${problem.expected}. What you typed is kept: look at the versions below, then go on.</p><div class="actions"><${Button} onClick=${() => (begin(problem.found), define.clear(), attempt.clear())}>Go on from version ${problem.found}</${Button}></div>`}</${Fault}>
    ${tried && html`<div class="card"><p>${tried.answer.status === 'already_applied' ? 'This is what the action has already.' : 'It would work.'}${tried.answer.broken_actions.length ? ` ${count(tried.answer.broken_actions.length, 'action')} would not:` : ''}</p>
      ${tried.answer.broken_actions.length > 0 && html`<ul>${tried.answer.broken_actions.map((one) => html`<li key=${one.name}><code>${one.name}</code>: <${Text} of=${one.detail} /></li>`)}</ul>`}</div>`}
    <div class="actions"><${Button} needs="editor" busy=${attempt.busy} off=${!sql.trim() || !name} why="Write the statement first." onClick=${attempt.run}>Try</${Button}><${Button} class="main" needs="editor" busy=${define.busy} off=${!sql.trim() || !name} why="Write the statement first." onClick=${define.run}>Define</${Button}></div>`;
}
