// Connections that are lost: a way to the server that can be cut, and time that does not have to be waited for.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Every wait of a page's is written down, and over at once; a socket's own time is not touched. */
export async function hasten(tab) {
  await tab.addInitScript(() => {
    window.waits = [];
    const wait = window.setTimeout;
    Math.random = () => 0.999999;
    window.setTimeout = (work, time = 0) => {
      if (time > 0) window.waits.push(Math.round(time / 1000));
      return wait(work, Math.min(time, 20));
    };
  });
}

/** A way to the server that can be cut, and mended; pages that come by it have its address. */
export async function startRelay(url) {
  const { port } = new URL(url);
  const through = new Set();
  let whole = true;
  let attempts = 0;
  const server = createServer((client) => {
    attempts += 1;
    const peer = whole && connect({ port, host: '127.0.0.1' });
    if (!peer) return client.destroy();
    for (const [from, to] of [[client, peer], [peer, client]]) {
      through.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => (through.delete(from), to.destroy()));
    }
    // The server is told the address that the page has: what is tested is the relay, not the host.
    client.once('data', (head) => {
      peer.write(head.toString('latin1').replace(/(\r\nHost: [^:]+):\d+/i, `$1:${port}`), 'latin1');
      client.pipe(peer);
    });
    peer.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    cut() {
      whole = false;
      for (const socket of through) socket.destroy();
    },
    mend() {
      whole = true;
    },
    attempts: () => attempts,
    stop() {
      for (const socket of through) socket.destroy();
      server.close();
    },
  };
}

/** Has a page's sockets, and them alone, go another way: browsers connect to the host of the page. */
export async function connectThroughRelay(tab, relay) {
  await tab.addInitScript((port) => {
    const Real = window.WebSocket;
    window.WebSocket = class extends Real {
      constructor(url) {
        const other = new URL(url);
        other.port = port;
        super(other.href);
      }
    };
  }, relay.port);
}
