// The relay before `ws`, an independent client: the groups of cases that the Autobahn suite has, as they apply to a relay of texts.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { frame, joinRoom, openSocket, closePayload, startRealtimeServer } from './lib.mjs';

const MOST = 16_384;

let svc;
before(async () => {
  svc = await startRealtimeServer();
});
after(() => svc?.stop());

/** An envelope of so many bytes. */
function messageOfSize(bytes) {
  const empty = JSON.stringify({ v: 1, type: 'say', data: '' });
  return JSON.stringify({ v: 1, type: 'say', data: 'x'.repeat(bytes - empty.length) });
}

/** Has a text sent in some way by one client, and sees that it reaches another as it was. */
async function assertRelayed(send, data) {
  const [one, other] = [await joinRoom(svc, 'a'), await joinRoom(svc, 'a')];
  await send(one);
  assert.deepEqual((await other.next('say')).data, data);
  one.socket.close();
  other.socket.close();
  await Promise.all([one.closed, other.closed]);
}

/** Writes frames in a room and to live queries, and sees with which code either is closed. */
async function assertCloses(bytes, code, what) {
  for (const path of ['/hall/ws?room=b', '/hall/api/live']) {
    const client = await openSocket(svc, path);
    for (const piece of [bytes].flat()) client.write(piece);
    assert.equal((await client.closed).code, code, `${what} at ${path}`);
  }
}

test('1: texts of every length that has a form of its own', async () => {
  for (const bytes of [64, 125, 126, 127, 128, 255, 256, MOST - 1, MOST]) {
    const text = messageOfSize(bytes);
    assert.equal(Buffer.byteLength(text), bytes);
    await assertRelayed(({ socket }) => socket.send(text), JSON.parse(text).data);
  }
});

test('1: a message comes whole when its bytes come one by one', async () => {
  const text = messageOfSize(200);
  await assertRelayed(async ({ write }) => {
    for (const byte of frame(0x81, text)) {
      write(Buffer.from([byte]));
      await new Promise((done) => setImmediate(done));
    }
  }, JSON.parse(text).data);
});

test('2: pings are answered with what they carry, in their order', async () => {
  const { socket, closed } = await joinRoom(svc, 'pings');
  const payloads = ['', 'x', 'hello', 'ä'.repeat(62), ...Array.from({ length: 10 }, (_, n) => `number ${n}`)];
  const answered = [];
  const all = new Promise((done) => socket.on('pong', (data) => answered.push(data.toString()) === payloads.length && done()));
  for (const payload of payloads) socket.ping(payload);
  await all;
  assert.deepEqual(answered, payloads);
  // A pong that nobody asked for is nothing.
  socket.pong('unasked');
  socket.ping('still here');
  const [last] = await once(socket, 'pong');
  assert.equal(last.toString(), 'still here');
  socket.close();
  await closed;
  await assertCloses(frame(0x89, 'x'.repeat(126)), 1002, 'a ping of 126 bytes');
});

test('3: reserved bits', async () => {
  for (const bits of [1, 2, 3, 4, 5, 6, 7]) {
    for (const opcode of [0x81, 0x89, 0x88]) {
      await assertCloses(frame(opcode | (bits << 4), '{}'), 1002, `bits ${bits} of ${opcode}`);
    }
  }
});

test('3: compression is not agreed on, whoever offers it', async () => {
  const client = await joinRoom(svc, 'compressed', { perMessageDeflate: true });
  assert.equal(client.socket.extensions, '');
  client.socket.close();
  await client.closed;
});

test('4: reserved opcodes', async () => {
  for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) {
    await assertCloses(frame(0x80 | opcode, 'x'), 1002, `opcode ${opcode}`);
    await assertCloses(frame(0x80 | opcode), 1002, `opcode ${opcode}, empty`);
  }
});

test('5: a message in parts, with pings in between', async () => {
  for (const parts of [2, 3, 7, 50]) {
    const text = messageOfSize(300);
    const size = Math.ceil(text.length / parts);
    await assertRelayed(async ({ socket }) => {
      const pongs = [];
      socket.on('pong', (data) => pongs.push(data.toString()));
      for (let at = 0; at < text.length; at += size) {
        socket.send(text.slice(at, at + size), { fin: at + size >= text.length });
        if (at + size < text.length) socket.ping(`${at}`);
      }
      while (pongs.length < Math.ceil(text.length / size) - 1) await once(socket, 'pong');
    }, JSON.parse(text).data);
  }
});

test('5: empty parts', async () => {
  await assertRelayed(({ write }) => {
    for (const bytes of [frame(0x01), frame(0x00), frame(0x00, messageOfSize(60)), frame(0x80)]) write(bytes);
  }, JSON.parse(messageOfSize(60)).data);
});

test('5: parts that do not belong together', async () => {
  for (const [what, ...frames] of [
    ['a continuation of nothing', frame(0x80, 'x')],
    ['a continuation of nothing, not the last', frame(0x00, 'x')],
    ['a continuation after a message', frame(0x81, '{}'), frame(0x80, 'x')],
    ['a text in a text', frame(0x01, 'x'), frame(0x81, 'x')],
    ['a binary in a text', frame(0x01, 'x'), frame(0x82, 'x')],
    ['a ping in parts', frame(0x09, 'x'), frame(0x80, 'x')],
    ['a pong in parts', frame(0x0a, 'x')],
    ['a close in parts', frame(0x08, closePayload(1000))],
  ]) {
    await assertCloses(frames, 1002, what);
  }
});

test('6: texts of every kind of character arrive as they were', async () => {
  for (const text of [
    'κόσμε',
    'Hello-µ@ßöäüàá-UTF-8!!',
    '\u0080\u0800\ud7ff\ue000\uffff',
    '\u{10000}\u{10ffff}\u{1fffe}',
    '\ufffd\ufffe\ufeff',
    '日本語 🇯🇵 👩‍👩‍👧',
  ]) {
    const envelope = JSON.stringify({ v: 1, type: 'say', data: text });
    await assertRelayed(({ socket }) => socket.send(envelope), text);
    // Cut within characters.
    await assertRelayed(({ write }) => {
      const bytes = Buffer.from(envelope);
      bytes.forEach((byte, at) => write(frame((at ? 0x00 : 0x01) | (at + 1 === bytes.length ? 0x80 : 0), Buffer.from([byte]))));
    }, text);
  }
});

test('6: what is no UTF-8', async () => {
  for (const bytes of [
    [0x80],
    [0xbf],
    [0xc0, 0x80],
    [0xc1, 0xbf],
    [0xc2],
    [0xe0, 0x80, 0xaf],
    [0xe0, 0x9f, 0xbf],
    [0xe2, 0x82],
    [0xed, 0xa0, 0x80],
    [0xed, 0xbf, 0xbf],
    [0xf0, 0x80, 0x80, 0xaf],
    [0xf0, 0x90, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xf5, 0x80, 0x80, 0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
    [0xfe],
    [0xff],
    [0xce, 0xba, 0xe1, 0xbd, 0xb9, 0xcf, 0x83, 0xce, 0xbc, 0xce, 0xb5, 0xed, 0xa0, 0x80, 0x65],
  ]) {
    const text = Buffer.from([0x22, ...bytes, 0x22]);
    await assertCloses(frame(0x81, text), 1007, text.toString('hex'));
    const parts = [...text].map((byte, at) => frame((at ? 0x00 : 0x01) | (at + 1 === text.length ? 0x80 : 0), Buffer.from([byte])));
    await assertCloses(parts, 1007, `${text.toString('hex')} in parts`);
  }
});

test('7: a close is answered with its code, and is the last', async () => {
  for (const code of [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 3999, 4000, 4999]) {
    await assertCloses(frame(0x88, closePayload(code, 'enough')), code, `code ${code}`);
  }
  await assertCloses(frame(0x88), 1005, 'no code');
  await assertCloses([frame(0x88, closePayload(1000)), frame(0x81, '{}'), frame(0x89, 'x')], 1000, 'frames behind a close');
  await assertCloses([frame(0x01, 'half'), frame(0x88, closePayload(1000))], 1000, 'a close within a message');
  await assertCloses(frame(0x88, closePayload(1000, 'x'.repeat(123))), 1000, 'the longest reason');
  const client = await joinRoom(svc, 'closing');
  client.socket.close(4321, 'κόσμε');
  assert.equal((await client.closed).code, 4321);
});

test('7: closes that break a rule', async () => {
  for (const code of [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535]) {
    await assertCloses(frame(0x88, closePayload(code)), 1002, `code ${code}`);
  }
  await assertCloses(frame(0x88, 'x'), 1002, 'half a code');
  await assertCloses(frame(0x88, closePayload(1000, 'x'.repeat(124))), 1002, 'a reason that is too long');
  await assertCloses(frame(0x88, closePayload(1000, Buffer.from([0xce, 0xba, 0xed, 0xa0, 0x80]))), 1007, 'a reason that is no UTF-8');
});

test('9: a message has its most, whole and in parts', async () => {
  const large = (bytes) => Buffer.from([0x81, 0xff, ...new Uint8Array(new BigUint64Array([BigInt(bytes)]).buffer).reverse(), 1, 2, 3, 4]);
  await assertCloses(frame(0x81, 'x'.repeat(MOST + 1)), 1009, 'a byte too many');
  for (const bytes of [65_536, 16 * 1024 * 1024, 2 ** 40]) await assertCloses(large(bytes), 1009, `${bytes} bytes`);
  await assertCloses([frame(0x01, 'x'.repeat(MOST)), frame(0x80, 'x')], 1009, 'a byte too many in parts');
  await assertCloses(Array.from({ length: 200 }, (_, at) => frame(at ? 0x00 : 0x01, 'x'.repeat(100))), 1009, 'parts without an end');
  await assertCloses(frame(0x82, 'x'), 1003, 'binary');
  await assertCloses(frame(0x02, 'x'), 1003, 'binary in parts');
});

test('frames of a client are masked', async () => {
  await assertCloses(Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002, 'no mask');
});

test('live queries are told to `ws`, too, and large answers come whole', async () => {
  const client = await openSocket(svc, '/hall/api/live');
  for (const length of [1, 100, 120, 126, 15_000]) {
    const text = 'ä'.repeat(length / 2);
    client.socket.send(JSON.stringify({ v: 1, type: 'subscribe', id: `e${length}`, action: 'echo', params: { text } }));
    const { id, seq, result } = await client.next('result');
    assert.deepEqual([id, seq, result.rows], [`e${length}`, 1, [{ text }]]);
  }
  client.socket.close();
  await client.closed;
});

test('`websockets` for Python says the same', { skip: !process.env.WEBSOCKETS_PYTHON && 'WEBSOCKETS_PYTHON names no Python with `websockets`' }, async () => {
  const script = fileURLToPath(new URL('client.py', import.meta.url));
  const { stdout } = await promisify(execFile)(process.env.WEBSOCKETS_PYTHON, [script, svc.url.replace(/^http/, 'ws')]);
  assert.match(stdout, /^done: \d+ checks$/m);
});
