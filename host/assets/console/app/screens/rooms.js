// Rooms: who is in them now, and a word of the owner's into one.
import { useRef, useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { Raw } from 'app/exact.js';
import { loadBackend, NoDatabase } from 'app/project.js';
import { useDraft, useLoad, usePoll, useRun } from 'app/load.js';
import { Button, Fault, Field, Form, Loaded, Screen, Switch, Table, Text, count, html, say } from 'app/ui.js';

const every = 2000;

async function load(project) {
  const backend = await loadBackend(project);
  const rooms = backend?.realtime.enabled ? (await call('list_rooms', { project })).rooms : [];
  return { backend, rooms };
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function List({ project, first }) {
  const [rooms, setRooms] = useState(first);
  const last = useRef({ at: performance.now(), rooms: first });
  const [rates, setRates] = useState({});
  usePoll(every, async () => {
    const next = (await call('list_rooms', { project })).rooms;
    const now = performance.now();
    const before = new Map(last.current.rooms.map((room) => [room.id, room.seq]));
    setRates(Object.fromEntries(next.map((room) => [room.id, Math.max(0, (room.seq - (before.get(room.id) ?? room.seq)) / ((now - last.current.at) / 1000))])));
    last.current = { at: now, rooms: next };
    setRooms(next);
  });
  const rows = rooms.map((room) => html`<tr key=${room.id}><th scope="row"><${Text} of=${room.id} /></th><td class="number">${room.members}</td><td class="number">${room.seq.toLocaleString()}</td><td class="number">${(rates[room.id] ?? 0).toFixed(1)}</td></tr>`);
  return html`<${Table} caption="Rooms" numbers=${[1, 2, 3]} columns=${['Room', 'Members', 'Messages', 'Messages a second']} rows=${rows} />
    ${!rooms.length && html`<p class="quiet">Nobody is in a room now. A page joins one with <code>svc.ws.room("lobby")</code>; it is here while somebody is in it.</p>`}`;
}

function Say({ project }) {
  const [room, setRoom] = useDraft(`${project}:say:room`);
  const [type, setType] = useDraft(`${project}:say:type`, 'notice');
  const [data, setData] = useDraft(`${project}:say:data`);
  const isText = data.trim() !== '' && !isJson(data);
  const send = useRun(async () => {
    const given = data.trim() === '' ? undefined : isText ? data : new Raw(data);
    const { seq } = await call('send_to_room', { project, room, body: { type, data: given } });
    say(seq ? `Sent as message ${seq} of ${room}.` : `Nobody is in ${room}, so nobody got it.`);
  });
  return html`<section class="card"><h2>Say something</h2><${Form} onSubmit=${send.run}>
    <div class="pair"><${Field} label="Room" value=${room} onInput=${setRoom} required maxlength="64" needs="editor" autocomplete="off" /><${Field} label="Type" value=${type} onInput=${setType} required maxlength="64" needs="editor" autocomplete="off" /></div>
    <${Field} label="Data" as="textarea" rows="3" class="code" value=${data} onInput=${setData} needs="editor" hint=${isText ? 'This is no JSON, and is sent as a text.' : 'JSON, or nothing. What is no JSON is sent as a text.'} />
    <${Fault} of=${send.problem} />
    <div class="actions"><${Button} type="submit" needs="editor" busy=${send.busy}>Send</${Button}></div></${Form}></section>`;
}

function Shown({ project, loaded, onDone }) {
  const { backend, rooms } = loaded;
  const isOn = backend.realtime.enabled;
  const turn = useRun(async (on) => {
    await call('update_backend', { project, body: { realtime: on } });
    await onDone();
    say(on ? 'Rooms are open.' : 'Rooms are closed, and everybody in them has left.');
  });
  return html`<div class="over"><${Switch} label="Realtime" on=${isOn} busy=${turn.busy} needs="editor" onChange=${turn.run} /><p class="quiet">${isOn ? `${count(backend.realtime.sockets, 'socket')} when this was opened` : ''}</p></div>
    <${Fault} of=${turn.problem} />
    ${isOn
      ? html`<${List} key=${rooms.length} project=${project} first=${rooms} /><${Say} project=${project} />`
      : html`<div class="empty"><h2>Rooms are closed</h2><p>Switch them on with the switch above, with <code>svc backend update --realtime true</code>, or by <code>manage_backend</code> <code>update</code>. Pages of this project can meet in them then.</p></div>`}`;
}

export function Rooms({ project, about }) {
  const all = useLoad(`rooms:${project}`, () => load(project));
  return html`<${Screen} title="Rooms" about=${about}>
    <${Loaded} load=${all}>${(value) => (value.backend ? html`<${Shown} project=${project} loaded=${value} onDone=${all.reload} />` : html`<${NoDatabase} project=${project}>Rooms belong to it, as they know its visitors.</${NoDatabase}>`)}</${Loaded}>
  </${Screen}>`;
}
