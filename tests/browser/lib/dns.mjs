// A DNS server on this machine, with the records that a test sets: the CNAME and TXT records that prove domains.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const kinds = { CNAME: 5, TXT: 16 };

/** Bytes of a name in a message. */
function encodeName(name) {
  const labels = name.split('.').filter(Boolean);
  return Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]), Buffer.from([0])]);
}

/** Name and kind of a message's question, and where the question ends. */
function readQuestion(message) {
  const labels = [];
  let at = 12;
  while (message[at] !== 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + message[at]).toLowerCase());
    at += 1 + message[at];
  }
  return { name: labels.join('.'), kind: message.readUInt16BE(at + 1), end: at + 5 };
}

/** Bytes of a record that lives for a minute. */
function encodeRecord({ name, type, value }) {
  const data = type === 'CNAME' ? encodeName(value) : Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  const head = Buffer.alloc(10);
  head.writeUInt16BE(kinds[type], 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt32BE(60, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), head, data]);
}

/** Answer to a message: the records of the name, or that there is no such name. */
function answerMessage(message, records) {
  const { name, kind, end } = readQuestion(message);
  const known = records.filter((record) => record.name === name);
  const found = known.filter(({ type }) => kinds[type] === kind || type === 'CNAME');
  const head = Buffer.alloc(12);
  message.copy(head, 0, 0, 2);
  // An answer, by a server that looks on for the client.
  head.writeUInt16BE(0x8180 | (known.length ? 0 : 3), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(found.length, 6);
  return Buffer.concat([head, message.subarray(12, end), ...found.map(encodeRecord)]);
}

/** Starts a server without records; its `address` goes into the settings of svc. */
export async function startDns() {
  const records = [];
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => socket.send(answerMessage(message, records), from.port, from.address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    /** Adds a record, as the API of domains shows it. */
    add: (record) => records.push(record),
    stop: () => socket.close(),
  };
}
