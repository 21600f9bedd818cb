// What several screens of a project ask for.
import { call } from 'app/api.js';
import { fetchProject, known, useLoad } from 'app/load.js';
import { Empty, html } from 'app/ui.js';

/** Loads a project as it is now. */
export const useProjectDetail = (project) => useLoad(`project:${project}`, () => fetchProject(project));

/** Whether a project has a database. Only one that says so is asked for it, as the answer would be an error. */
export const hasBackend = async (project) => Boolean(known(`known:${project}`)?.backend ?? (await fetchProject(project)).backend);

/** Loads a project's backend; null where it has none. */
export async function loadBackend(project) {
  if (!(await hasBackend(project))) return null;
  try {
    return await call('get_backend', { project });
  } catch (error) {
    if (error.status !== 404) throw error;
    // It was deleted meanwhile; the project's own answer tells the two apart.
    await fetchProject(project);
    return null;
  }
}

export const useBackend = (project) => useLoad(`backend:${project}`, () => loadBackend(project));

/** What stands where a screen needs a database and there is none. */
export function NoDatabase({ project, children }) {
  return html`<${Empty} title="This project has no database yet">
    <p>${children}</p>
    <p>Make one in <a href=${`/p/${project}/schema`}>Schema</a>, at a shell with <code>svc apply</code>, or have an agent call <code>manage_backend</code> <code>create</code>.</p>
  </${Empty}>`;
}
