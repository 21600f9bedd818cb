// What a statement answered: the rows, how many it changed, and the same as a file.
import { useMemo, useState } from 'preact/hooks';
import { Grid } from 'app/grid.js';
import { toCsv, toJson } from 'app/values.js';
import { Button, Text, count, html, save } from 'app/ui.js';

/** `took` are milliseconds; `name` is what files are called. */
export function Result({ result, took, name = 'result', mayDownload = true }) {
  const [isAll, showAll] = useState(false);
  const many = 500;
  const content = useMemo(() => {
    const shown = isAll ? result.rows : result.rows.slice(0, many);
    return { names: result.columns, rows: shown.map((row) => result.columns.map((column) => row[column])) };
  }, [result, isAll]);
  const heads = result.columns.map((column) => html`<${Text} of=${column} />`);
  const told = [
    result.columns.length ? count(result.rows.length, 'row') : '',
    result.truncated ? 'there are more, which the server does not answer at once' : '',
    result.rows_affected || !result.columns.length ? `${count(result.rows_affected, 'row')} changed` : '',
    took === undefined ? '' : `${took.toLocaleString()} ms`,
  ].filter(Boolean);
  return html`<div class="result"><p class="quiet">${told.join(' · ')}</p>
    ${result.columns.length > 0 && html`<${Grid} caption="Result" heads=${heads} content=${content} empty=${html`<p>No rows.</p>`} />
      ${!isAll && result.rows.length > many && html`<div class="actions"><${Button} onClick=${() => showAll(true)}>Show all ${result.rows.length} rows</${Button}></div>`}
      ${mayDownload && html`<div class="actions"><${Button} onClick=${() => save(toCsv(result), `${name}.csv`, 'text/csv;charset=utf-8')}>Download CSV</${Button}><${Button} onClick=${() => save(toJson(result), `${name}.json`, 'application/json')}>Download JSON</${Button}></div>
      <p class="hint">Files have whole values${result.truncated ? `, of the first ${count(result.rows.length, 'row')}` : ''}. In CSV a text that a spreadsheet would run (=, +, -, @) begins with an apostrophe, and NULL is nothing; JSON is exact.</p>`}`}
  </div>`;
}
