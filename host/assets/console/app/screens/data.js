// Tables, and the rows of one.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { NoDatabase, useBackend } from 'app/project.js';
import { maxColumns, operators, pageRows, selectRows, selectView } from 'app/statements.js';
import { write } from 'app/exact.js';
import { Grid } from 'app/grid.js';
import { Row } from 'app/row.js';
import { begin, asProblem, useDraft, usePoll } from 'app/load.js';
import { Button, Fault, Field, Form, Loaded, Screen, Switch, Table, Text, count, html, options } from 'app/ui.js';

const isOurs = (name) => name.startsWith('svc_');

function Tables({ project, backend }) {
  const rowsOf = Object.fromEntries(backend.inventory.tables.map((table) => [table.name, table.rows]));
  const row = (name, kind, columns) => html`<tr key=${`${kind}${name}`}><th scope="row"><a href=${`/p/${project}/data?table=${encodeURIComponent(name)}`}><${Text} of=${name} /></a></th><td>${kind}${isOurs(name) ? ', read only' : ''}</td><td class="number">${columns ?? ''}</td><td class="number">${rowsOf[name] === undefined ? '' : rowsOf[name].toLocaleString()}</td></tr>`;
  const rows = [...backend.schema.tables.map((table) => row(table.name, 'table', table.columns.length)), ...backend.schema.views.map((view) => row(view.name, 'view'))];
  return html`<${Table} caption="Tables" columns=${['Table', 'Kind', 'Columns', 'Rows']} numbers=${[2, 3]} rows=${rows} />`;
}

// Rows that are too large together are asked for in smaller pages; where even cutting is too much, they are read whole.
const attempts = [{ size: pageRows }, { size: 10 }, { size: 1 }, { size: 10, isWhole: true }, { size: 1, isWhole: true }];
const isTooMuch = ({ code, reason }) => code === 'payload_too_large' || (code === 'statement_failed' && /value is longer/.test(reason ?? ''));

async function read(project, table, isView, view) {
  let refused;
  for (const { size, isWhole } of attempts) {
    if (refused?.code === 'statement_failed' && !isWhole) continue;
    const asked = { ...view, limit: size + 1, isWhole };
    const statement = isView ? selectView(table.name, asked) : selectRows(table, asked);
    try {
      const answer = await call('query_backend', { project, body: { ...statement, read_only: true } });
      return { ...answer, size, offset: view.offset, rows: answer.rows.slice(0, size), hasMore: answer.rows.length > size };
    } catch (error) {
      if (!isTooMuch(error)) throw error;
      refused = error;
    }
  }
  throw refused;
}

function Filter({ place, columns, filter, apply }) {
  const [column, setColumn] = useState(filter?.column ?? columns[0] ?? '');
  const [operator, setOperator] = useState(filter?.operator ?? '=');
  const [value, setValue] = useDraft(`${place}:value`, filter?.value ?? '');
  const bare = operator.startsWith('is ');
  return html`<${Form} class="filter" onSubmit=${() => apply({ column: column || columns[0], operator, value })}>
    <${Field} label="Filter column" as="select" value=${column} onInput=${setColumn}>${options(columns.map((name) => [name, name]))}</${Field}>
    <${Field} label="Operator" as="select" value=${operator} onInput=${setOperator}>${options(operators.map((one) => [one, one]))}</${Field}>
    <${Field} label="Value" value=${bare ? '' : value} readOnly=${bare} onInput=${setValue} autocomplete="off" />
    <div class="actions"><${Button} type="submit">Apply filter</${Button}>${filter && html`<${Button} onClick=${() => (setValue(''), apply(undefined))}>Remove filter</${Button}>`}</div>
  </${Form}>`;
}

function Rows({ project, backend, name, reload }) {
  const table = backend.schema.tables.find((one) => one.name === name);
  const isView = !table;
  const isFixed = isView || isOurs(name);
  const place = `${project}:rows:${name}`;
  const [view, setView] = useDraft(place, { offset: 0 });
  const [page, setPage] = useState(null);
  const [problem, setProblem] = useState(undefined);
  const [live, setLive] = useState(false);
  const [open, setOpen] = useState(null);
  const newest = useRef(undefined);
  const turn = useRef(0);
  const load = async () => {
    const mine = ++turn.current;
    try {
      const answer = await read(project, table ?? { name }, isView, view);
      if (mine === turn.current) setProblem(undefined), setPage(answer);
    } catch (error) {
      if (mine === turn.current) setProblem(asProblem(error));
    }
  };
  // Before the screen is painted: an address is busy until its rows are there.
  useLayoutEffect(() => {
    const done = begin();
    load().finally(done);
    return done;
  }, [view]);
  usePoll(
    2000,
    async () => {
      const past = await call('list_backend_history', { project, query: { limit: 1 } });
      if (past.newest !== null && past.newest === newest.current) return;
      newest.current = past.newest;
      await load();
    },
    live,
  );
  const columns = isView ? (page?.columns ?? []) : table.columns.slice(0, maxColumns).map((column) => column.name);
  const go = (next) => setView({ ...view, ...next });
  const sortBy = (column) => go({ offset: 0, sort: view.sort?.column !== column ? { column } : view.sort.down ? undefined : { column, down: true } });
  const heads = columns.map((column) => (isView ? html`<${Text} of=${column} />` : html`<button type="button" class="sort" onClick=${() => sortBy(column)}><${Text} of=${column} />${view.sort?.column === column ? html`<span aria-hidden="true">${view.sort.down ? ' ↓' : ' ↑'}</span>` : ''}</button>`));
  const sorted = (at) => {
    const column = columns[isFixed ? at : at - 1];
    return view.sort?.column === column && column !== undefined ? (view.sort.down ? 'descending' : 'ascending') : undefined;
  };
  const keys = (row) => Object.keys(row).filter((key) => /^k\d+$/.test(key)).map((key) => row[key]);
  const content = useMemo(
    () =>
      page && {
        names: columns,
        rows: page.rows.map((row) => columns.map((column, at) => (isView ? row[column] : row[`c${at}`]))),
        keys: isView ? undefined : page.rows.map((row) => write(keys(row))),
        label: isFixed ? undefined : 'Open row',
      },
    [page],
  );
  const inAll = backend.inventory.tables.find((one) => one.name === name)?.rows;
  return html`
    ${!isView && html`<${Filter} place=${place} columns=${columns} filter=${view.filter} apply=${(filter) => go({ filter, offset: 0 })} />`}
    <div class="over"><p class="quiet">${page ? (page.rows.length ? `Rows ${page.offset + 1} to ${page.offset + page.rows.length}` : 'No rows here') : ''}${inAll !== undefined && !view.filter && !live ? ` of ${inAll.toLocaleString()}` : ''}${table && table.columns.length > maxColumns ? `; the first ${maxColumns} of ${count(table.columns.length, 'column')}` : ''}${isView ? '; a view is read only' : ''}${isOurs(name) ? '; the server keeps this table' : ''}.</p>
      <div class="actions"><${Switch} label="Live" on=${live} onChange=${setLive} />${!isFixed && html`<${Button} class="main" needs="editor" onClick=${() => setOpen({})}>Insert row</${Button}>`}</div></div>
    <${Fault} of=${problem} />
    ${content && html`<${Grid} caption="Rows" heads=${isFixed ? heads : [html`<span class="hidden">Row</span>`, ...heads]} sort=${sorted} content=${content} onPress=${(at) => setOpen({ key: keys(page.rows[at]) })} empty=${html`<p>${view.filter ? 'No row fits the filter.' : html`There are no rows. ${!isFixed && 'Insert the first one above, or have an action do it.'}`}</p>`} />`}
    ${page && html`<div class="actions"><${Button} off=${page.offset === 0} why="This is the first page." onClick=${() => go({ offset: Math.max(0, page.offset - page.size) })}>Previous page</${Button}><${Button} off=${!page.hasMore} why="This is the last page." onClick=${() => go({ offset: page.offset + page.size })}>Next page</${Button}></div>`}
    ${open && html`<${Row} project=${project} table=${table} rowKey=${open.key} onClose=${() => setOpen(null)} onDone=${() => Promise.all([load(), reload()])} />`}`;
}

export function Data({ project, query, about }) {
  const backend = useBackend(project);
  const name = query.get('table');
  const isThere = !name || !backend.value || [...backend.value.schema.tables, ...backend.value.schema.views].some((one) => one.name === name);
  return html`<${Screen} title=${name ?? 'Data'} about=${about} lead=${name && html`<a href=${`/p/${project}/data`}>All tables</a>`}>
    <${Loaded} load=${backend}>${(value) =>
      !value
        ? html`<${NoDatabase} project=${project}>Its tables and their rows are shown here.</${NoDatabase}>`
        : !name
          ? html`<${Tables} project=${project} backend=${value} />`
          : isThere
            ? html`<${Rows} key=${name} project=${project} backend=${value} name=${name} reload=${backend.reload} />`
            : html`<p class="banner">There is no table or view of this name. <a href=${`/p/${project}/data`}>See those that there are</a>.</p>`}</${Loaded}>
  </${Screen}>`;
}
