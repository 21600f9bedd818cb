// The official clients in JavaScript, each in the ways in which it finds out which version of the protocol is spoken.
import * as v2 from '@modelcontextprotocol/client';
import { Client as V1Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as V1Transport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const who = { name: 'svc-tests', version: '1.0.0' };

export const clients = {
  'SDK v1': { client: () => new V1Client(who), transport: V1Transport },
  'SDK v2 with initialize': { client: () => new v2.Client(who), transport: v2.StreamableHTTPClientTransport },
  'SDK v2 that finds out': {
    client: () => new v2.Client(who, { versionNegotiation: { mode: 'auto' } }),
    transport: v2.StreamableHTTPClientTransport,
    version: '2026-07-28',
  },
  'SDK v2 of 2026-07-28': {
    client: () => new v2.Client(who, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    transport: v2.StreamableHTTPClientTransport,
    version: '2026-07-28',
  },
};
