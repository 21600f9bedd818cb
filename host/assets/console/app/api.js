// The one place that names operations of the API. Screens call them by the ids that the description gives them.

// `exact` answers may hold what visitors or owners stored: their numbers are read without rounding.
// `held` requests carry an Idempotency-Key, so that they may be sent again.
const operations = {
  get_me: 'GET /me',
  list_workspaces: 'GET /workspaces',
  create_workspace: 'POST /workspaces held',
  get_workspace: 'GET /workspaces/{workspace}',
  update_workspace: 'PATCH /workspaces/{workspace}',
  delete_workspace: 'DELETE /workspaces/{workspace}',
  add_member: 'POST /workspaces/{workspace}/members held',
  set_role: 'PATCH /workspaces/{workspace}/members/{user}',
  remove_member: 'DELETE /workspaces/{workspace}/members/{user}',
  list_keys: 'GET /workspaces/{workspace}/keys',
  create_key: 'POST /workspaces/{workspace}/keys',
  revoke_key: 'DELETE /workspaces/{workspace}/keys/{key}',
  list_audit: 'GET /workspaces/{workspace}/audit',
  buy_plan: 'POST /workspaces/{workspace}/billing/checkout',
  manage_plan: 'POST /workspaces/{workspace}/billing/portal',

  list_projects: 'GET /projects',
  create_project: 'POST /projects held',
  get_project: 'GET /projects/{project}',
  update_project: 'PATCH /projects/{project}',
  delete_project: 'DELETE /projects/{project}',
  list_visitors: 'GET /projects/{project}/visitors',
  forget_visitor: 'DELETE /projects/{project}/visitors/{visitor}',
  list_files: 'GET /projects/{project}/files',
  get_file_of_visitor: 'GET /projects/{project}/files/{file} bytes',
  delete_file_of_visitor: 'DELETE /projects/{project}/files/{file}',
  list_domains: 'GET /projects/{project}/domains',
  add_domain: 'POST /projects/{project}/domains',
  update_domain: 'PATCH /projects/{project}/domains/{domain}',
  verify_domain: 'POST /projects/{project}/domains/{domain}/verify',
  remove_domain: 'DELETE /projects/{project}/domains/{domain}',
  get_stats: 'GET /projects/{project}/stats',
  list_log: 'GET /projects/{project}/log',

  list_frontends: 'GET /projects/{project}/frontends',
  create_frontend: 'POST /projects/{project}/frontends held',
  claim_share: 'POST /projects/{project}/frontends/claim',
  get_frontend: 'GET /projects/{project}/frontends/{page}',
  republish_frontend: 'PUT /projects/{project}/frontends/{page}',
  delete_frontend: 'DELETE /projects/{project}/frontends/{page}',
  get_content: 'GET /projects/{project}/frontends/{page}/content',
  list_revisions: 'GET /projects/{project}/frontends/{page}/revisions',
  get_revision: 'GET /projects/{project}/frontends/{page}/revisions/{revision}',
  create_revision: 'POST /projects/{project}/frontends/{page}/revisions held',
  delete_revision: 'DELETE /projects/{project}/frontends/{page}/revisions/{revision}',
  promote_revision: 'POST /projects/{project}/frontends/{page}/promote',
  rollback_revision: 'POST /projects/{project}/frontends/{page}/rollback',
  list_releases: 'GET /projects/{project}/frontends/{page}/releases',
  put_file: 'PUT /projects/{project}/frontends/{page}/files/{path}',
  get_file: 'GET /projects/{project}/frontends/{page}/files/{path} bytes',
  delete_file: 'DELETE /projects/{project}/frontends/{page}/files/{path}',
  get_archive: 'GET /projects/{project}/frontends/{page}/archive bytes',

  create_backend: 'POST /projects/{project}/backend held exact',
  get_backend: 'GET /projects/{project}/backend exact',
  update_backend: 'PATCH /projects/{project}/backend exact',
  delete_backend: 'DELETE /projects/{project}/backend',
  define_actions: 'PUT /projects/{project}/backend/actions exact',
  list_actions: 'GET /projects/{project}/backend/actions exact',
  list_action_versions: 'GET /projects/{project}/backend/actions/{action}/versions exact',
  rollback_action: 'POST /projects/{project}/backend/actions/{action}/rollback exact',
  delete_action: 'DELETE /projects/{project}/backend/actions/{action}',
  query_backend: 'POST /projects/{project}/backend/query exact',
  call_actions: 'POST /projects/{project}/backend/batch exact',
  list_backend_history: 'GET /projects/{project}/backend/history',
  restore_backend: 'POST /projects/{project}/backend/restore',
  export_backend: 'GET /projects/{project}/backend/export bytes',
  list_rooms: 'GET /projects/{project}/backend/rooms',
  send_to_room: 'POST /projects/{project}/backend/rooms/{room}/messages exact',

  list_catalog: 'GET /projects/{project}/payments/catalog',
  add_price: 'POST /projects/{project}/payments/catalog',
  deactivate_price: 'DELETE /projects/{project}/payments/catalog/{price}',
  list_sessions: 'GET /projects/{project}/payments/sessions',
};

// Operations that the console does without.
export const unused = {
  list_members: '`get_workspace` answers them, too.',
  release_project: 'A release comes from a folder, which `svc apply` has and a browser has not.',
  put_blob: 'Files of a site are sent by `put_file`, each at its path.',
  get_domain: '`list_domains` and `verify_domain` answer the same.',
};

/** What the API answers in place of what was asked for (RFC 9457), or that it did not answer. */
export class Problem extends Error {
  constructor(fields) {
    super(fields.detail || fields.title);
    Object.assign(this, fields);
  }
}

// The session fills these in: the API needs its credential, and it must hear when one has ended.
export const wire = { credential: () => undefined, ended: () => {} };

const table = new Map(
  Object.entries(operations).map(([id, line]) => {
    const [method, path, ...marks] = line.split(' ');
    return [id, { method, path, held: marks.includes('held'), exact: marks.includes('exact'), bytes: marks.includes('bytes') }];
  }),
);

/** Answers each operation with its method and its path, for the test that holds them against the description. */
export const list = () => [...table].map(([id, { method, path }]) => ({ id, method, path: `/api/v1${path}` }));

/**
 * Calls an operation. `args` are the parts of its path by name, beside `query`, `body` (an object), `bytes` (a file), `key` (the
 * Idempotency-Key of a request that is sent again) and `credential` (to try one that is not kept yet).
 */
export async function call(id, args = {}) {
  const operation = table.get(id);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) =>
    name === 'path' ? args.path.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(args[name]),
  );
  const query = new URLSearchParams(Object.entries(args.query ?? {}).filter(([, value]) => value !== undefined && value !== ''));
  const address = `/api/v1${path}${query.size ? `?${query}` : ''}`;
  const exact = operation.exact && (await import('app/exact.js'));
  const headers = { Accept: 'application/json' };
  const credential = args.credential ?? wire.credential();
  if (credential) headers.Authorization = `Bearer ${credential}`;
  if (operation.held) headers['Idempotency-Key'] = args.key ?? newKey();
  const request = { method: operation.method, headers, credentials: 'omit', referrerPolicy: 'no-referrer', redirect: 'error' };
  if (args.bytes) request.body = args.bytes;
  else if (operation.method !== 'GET' && operation.method !== 'DELETE') {
    headers['Content-Type'] = 'application/json';
    request.body = exact ? exact.write(args.body ?? {}) : JSON.stringify(args.body ?? {});
  }
  const response = await send(address, request);
  if (!response.ok) throw await refusal(response, args.credential === undefined);
  if (operation.bytes) return response;
  if (response.status === 204) return undefined;
  const text = await response.text();
  return exact ? exact.read(text) : JSON.parse(text);
}

/** Fetches what is not an operation: the configuration, and the exchange of a link. */
export async function ask(address, body) {
  const request = { method: body ? 'POST' : 'GET', credentials: 'omit', referrerPolicy: 'no-referrer', headers: { Accept: 'application/json' } };
  if (body) {
    request.headers['Content-Type'] = 'application/json';
    request.body = JSON.stringify(body);
  }
  const response = await send(address, request);
  if (!response.ok) throw await refusal(response, false);
  return response.json();
}

/** Ends the session of a link: the server revokes its key. A key that came otherwise is not its to revoke. */
export async function endLink() {
  const headers = { Accept: 'application/json', Authorization: `Bearer ${wire.credential()}` };
  const response = await send('/_svc/console/session', { method: 'DELETE', credentials: 'omit', referrerPolicy: 'no-referrer', headers });
  if (!response.ok) throw await refusal(response, false);
}

async function send(address, request) {
  try {
    return await fetch(address, request);
  } catch {
    throw new Problem({
      status: 0,
      code: 'unreachable',
      title: 'The server does not answer',
      detail: 'The request did not get through. Look at the connection, then try again.',
    });
  }
}

async function refusal(response, isOurs) {
  const fields = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get('Retry-After')) || undefined;
  const problem = new Problem({
    code: 'internal',
    title: `The server answered ${response.status}`,
    detail: '',
    ...fields,
    status: response.status,
    retryAfter: wait,
    request_id: fields.request_id ?? response.headers.get('X-Request-Id') ?? undefined,
  });
  // Other 401s are about the call: an action may want a visitor, say.
  if (problem.code === 'unauthorized' && isOurs) wire.ended();
  return problem;
}

/** Makes an Idempotency-Key. */
export const newKey = () => crypto.randomUUID();
