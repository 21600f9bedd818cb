// A page with rooms and live queries, clients of it by `ws`, and frames that no client sends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { startSvc } from '../browser/lib/svc.mjs';

/** Starts a server whose page `hall` has rooms and live queries, with limits that are in nobody's way but those of frames. */
export async function startRealtimeServer() {
  const rules = ['op', 'op_deployment'].flatMap((rule) => [[`${rule}_per_minute`, 100000], [`${rule}_burst`, 100000]]);
  const many = ['sockets_per_backend', 'sockets_per_ip', 'messages_per_second'].map((name) => [name, 10000]);
  const svc = await startSvc({ limits: Object.fromEntries([...rules, ...many]) });
  const ask = await svc.owner('acme');
  const { id } = await ask('POST', '', { name: 'Hall' });
  await ask('POST', `/${id}/backend`, { ddl: 'CREATE TABLE votes (id INTEGER PRIMARY KEY, choice TEXT)', realtime: true });
  await ask('PUT', `/${id}/backend/actions`, {
    actions: [
      { name: 'echo', sql: 'SELECT :text AS text' },
      { name: 'total', sql: 'SELECT count(*) AS n FROM votes' },
      { name: 'vote', sql: 'INSERT INTO votes (choice) VALUES (:choice)' },
    ],
  });
  await ask('POST', `/${id}/frontends`, { type: 'markdown', requested_slug: 'hall', content: '# Hall' });
  return svc;
}

/** Opens a socket that keeps what it hears: `heard` its envelopes, `next` the next of a type. */
export async function openSocket(svc, path, options = {}) {
  const socket = new WebSocket(svc.url.replace(/^http/, 'ws') + path, options);
  const heard = [];
  const waiting = [];
  const look = () => {
    for (const wait of [...waiting]) {
      const at = heard.findIndex((envelope) => wait.types.includes(envelope.type));
      if (at < 0) continue;
      waiting.splice(waiting.indexOf(wait), 1);
      wait.resolve(heard.splice(at, 1)[0]);
    }
  };
  socket.on('message', (data, isBinary) => {
    assert.equal(isBinary, false);
    heard.push(JSON.parse(data));
    look();
  });
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() })));
  await once(socket, 'open');
  return {
    socket,
    heard,
    closed,
    next: (...types) =>
      new Promise((resolve) => {
        waiting.push({ types, resolve });
        look();
      }),
    /** Writes bytes past the client's own protocol. */
    write: (bytes) => socket._socket.write(bytes),
  };
}

/** Joins a room. */
export async function joinRoom(svc, room, options) {
  const client = await openSocket(svc, `/hall/ws?room=${room}`, options);
  await client.next('svc:welcome');
  return client;
}

/** A client's frame: the first byte, a payload, and a mask. */
export function frame(first, payload = '') {
  const bytes = Buffer.from(payload);
  const head =
    bytes.length < 126 ? [first, 0x80 | bytes.length] : [first, 0xfe, bytes.length >> 8, bytes.length & 0xff];
  const mask = [0x0a, 0x1b, 0x2c, 0x3d];
  return Buffer.from([...head, ...mask, ...bytes.map((byte, at) => byte ^ mask[at % 4])]);
}

/** Two bytes of a close code, and a reason. */
export const closePayload = (code, text = '') => Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(text)]);
