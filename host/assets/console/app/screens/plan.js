// The plan of a workspace, which is bought at the payment provider.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { config } from 'app/session.js';
import { useLoad, usePoll, useRun } from 'app/load.js';
import { Button, Fault, Loaded, Screen, Table, html, say, size } from 'app/ui.js';

const load = async (workspace) => {
  const [settings, detail] = await Promise.all([config(), call('get_workspace', { workspace })]);
  return { limits: settings.limits, detail };
};

function Shown({ workspace, loaded, load: again }) {
  const { limits, detail } = loaded;
  const [isWaiting, wait] = useState(false);
  usePoll(3000, async () => {
    const now = await call('get_workspace', { workspace });
    if (now.plan === detail.plan) return;
    wait(false);
    again.set({ limits, detail: now });
    say(`The plan is ${now.plan} now.`);
  }, isWaiting);
  // A tab of its own, made by the click: the provider gets no hold of this one.
  const leave = (operation) => async () => {
    const tab = open('', '_blank');
    try {
      const { url } = await call(operation, { workspace });
      if (tab) {
        tab.opener = null;
        tab.location.replace(url);
      } else location.assign(url);
      wait(true);
    } catch (error) {
      tab?.close();
      throw error;
    }
  };
  const buy = useRun(leave('buy_plan'));
  const manage = useRun(leave('manage_plan'));
  const isPro = detail.plan === 'pro';
  const line = (what, free, pro, show = String) => free !== undefined && html`<tr key=${what}><th scope="row">${what}</th><td class="number">${show(free)}</td><td class="number">${show(pro)}</td></tr>`;
  const rows = [
    line('Projects', limits.projects_free, limits.projects_pro),
    line('Files of a project', limits.storage_bytes_free, limits.storage_bytes_pro, size),
    line('One file', limits.file_bytes_free, limits.file_bytes_pro, size),
    line('Files of a site', limits.site_files_free, limits.site_files_pro, (number) => number.toLocaleString()),
  ].filter(Boolean);
  return html`<p>The workspace has the plan <strong>${detail.plan}</strong>, and ${detail.project_count} of ${isPro ? limits.projects_pro : limits.projects_free} projects.</p>
    <${Table} caption="Plans" columns=${['What', 'Free', 'Pro']} numbers=${[1, 2]} rows=${rows} />
    <${Fault} of=${buy.problem ?? manage.problem} />
    ${isWaiting && html`<p class="banner">The provider's page is in a new tab. When it has told this server, the plan changes here by itself.</p>`}
    <div class="actions"><${Button} needs="owner" busy=${manage.busy} onClick=${manage.run}>Manage subscription</${Button}><${Button} class="main" needs="owner" busy=${buy.busy} off=${isPro} why="The workspace has this plan." onClick=${buy.run}>Buy pro</${Button}></div>`;
}

export function Plan({ workspace }) {
  const all = useLoad(`plan:${workspace}`, () => load(workspace));
  return html`<${Screen} title="Plan" about=${workspace}><${Loaded} load=${all}>${(value) => html`<${Shown} workspace=${workspace} loaded=${value} load=${all} />`}</${Loaded}></${Screen}>`;
}
