// Typings of the runtime that a project's frontends are given as `window.svc`.

/**
 * The actions of the project, each with its `params` and with the `row` that it answers. `svc types` writes a declaration that adds
 * them: then their names, params and columns are checked. Without it any action may be called with any params.
 */
interface SvcActions {}

declare namespace svc {
  /** The slug of this page. */
  const slug: string;

  /** What every call fails with. */
  class SvcError extends Error {
    /** The problem's stable code. */
    code: string;
    /** The HTTP status, or 0 where there was no answer. */
    status: number;
    /** The whole problem, where there was one. */
    details?: unknown;
    /** Seconds to wait. */
    retryAfter?: number;
  }

  type Value = null | boolean | number | string | { base64: string };
  type Params = Record<string, Value>;
  type Row = Record<string, Value>;

  namespace db {
    interface Result<T = Row> {
      rows: T[];
      columns: string[];
      rows_affected: number;
      truncated: boolean;
    }
    /** An action of any name: where `SvcActions` has some, no other. */
    type AnyAction = [keyof SvcActions] extends [never] ? string : never;
    type ActionParams<A extends keyof SvcActions> = SvcActions[A] extends { params: infer P } ? P : Params;
    type ActionRow<A extends keyof SvcActions> = SvcActions[A] extends { row: infer R } ? R : Row;
    /** Whether all params may be left out. */
    type NeedsNone<A extends keyof SvcActions> = {} extends ActionParams<A> ? true : false;

    /** Calls a named action of the project's backend. */
    function op<T = Row>(action: AnyAction, params?: Params): Promise<Result<T>>;
    function op<A extends keyof SvcActions>(
      action: A,
      ...params: NeedsNone<A> extends true ? [params?: ActionParams<A>] : [params: ActionParams<A>]
    ): Promise<Result<ActionRow<A>>>;

    /** A value, or what the first row of an earlier op has in a column. */
    type Given<V> = V | { from: [op: number, column: string] };
    interface UncheckedOp {
      action: string;
      params?: Record<string, Given<Value>>;
    }
    type GivenParams<A extends keyof SvcActions> = { [N in keyof ActionParams<A>]: Given<ActionParams<A>[N]> };
    type CheckedOp = {
      [A in keyof SvcActions]: NeedsNone<A> extends true
        ? { action: A; params?: GivenParams<A> }
        : { action: A; params: GivenParams<A> };
    }[keyof SvcActions];
    type Op = [keyof SvcActions] extends [never] ? UncheckedOp : CheckedOp;
    type OpRow<O> = O extends { action: infer A } ? (A extends keyof SvcActions ? ActionRow<A> : Row) : Row;
    /** Calls actions, at most 20, in one transaction: all of them, or none. An error's `details.index` says which failed. */
    function batch<O extends CheckedOp[]>(ops: [...O]): Promise<{ [I in keyof O]: Result<OpRow<O[I]>> }>;
    function batch<T = Row>(ops: Op[]): Promise<Result<T>[]>;

    /**
     * Calls back with what a reading action answers: at once, and whenever a commit has changed it. All live queries of a page
     * share one connection, which is opened again whenever it is lost; then `callback` is called only if the answer is another. A page
     * that is hidden for a minute lets go until it is looked at. `onError` is told why a query has ended, and of `unreachable`
     * while it is being tried again. A page has as many live queries as a connection may have, 20 unless the operator chose
     * otherwise: one more ends with `rate_limited`. Returns how to stop.
     */
    function live<T = Row>(
      action: AnyAction,
      params: Params | undefined,
      callback: (result: Result<T>) => void,
      opts?: { onError?: (error: SvcError) => void },
    ): () => void;
    function live<A extends keyof SvcActions>(
      action: A,
      params: NeedsNone<A> extends true ? ActionParams<A> | undefined : ActionParams<A>,
      callback: (result: Result<ActionRow<A>>) => void,
      opts?: { onError?: (error: SvcError) => void },
    ): () => void;
  }

  namespace files {
    /** A file that was uploaded. */
    interface UploadedFile {
      /** The value of `:svc_file` in actions. */
      id: string;
      name: string;
      /** The media type, as the server has recognised it. */
      type: string;
      size: number;
      sha256: string;
      /** Of a picture, as it is shown. */
      width?: number;
      height?: number;
      /** Squares that smaller copies of the picture fit. */
      sizes: number[];
      created_at: string;
    }
    interface UploadOptions {
      params?: Params;
      onProgress?: (progress: { loaded: number; total: number }) => void;
      signal?: AbortSignal;
    }
    /** Uploads a file by an action with `:svc_file`; `result` is what its statement answers. */
    function upload<T = Row>(
      action: string,
      file: Blob,
      opts?: UploadOptions,
    ): Promise<{ file: UploadedFile; result: db.Result<T> }>;
    /** Composes the URL of a file, for an `img` or a link; who may read it is said by a reading action with `:svc_file`. */
    function url(action: string, id: string, opts?: { size?: 64 | 128 | 256 | 512 | 1024 | 2048 }): string;
  }

  interface User {
    /** The value of `:svc_user_id` in actions. */
    id: string;
    /** Only if the provider has made sure that it is theirs. */
    email?: string;
    /** The value of `:svc_user_name` in actions. */
    name?: string;
    /** The address of a picture. */
    picture?: string;
    /** Which provider they signed in with. */
    provider?: string;
    /** A language tag. */
    locale?: string;
    /** When the session ends, whatever they do. */
    expiresAt?: string;
  }

  namespace auth {
    /** The signed-in visitor, or null; asked for once a page load, unless with `refresh`. */
    function user(opts?: { refresh?: boolean }): Promise<User | null>;
    /** Leaves the page for the sign-in, and comes back to `returnTo`, or to here; with `auth_error` in the query if it failed. */
    function login(opts?: { provider?: string; returnTo?: string }): void;
    /** Signs out on this page, in all its tabs. */
    function logout(): Promise<void>;
    /** Calls back when the visitor changes, in another tab too; returns how to stop that. */
    function onChange(cb: (u: User | null) => void): () => void;
  }

  namespace ws {
    /** What another member, or the owner, has said. */
    interface Message {
      v: 1;
      type: string;
      data: any;
      /** The sender's client id, or `owner`. */
      sender: string;
      /** Who the sender is, if it joined with `identify` and has signed in. */
      user?: Member;
      room: string;
      ts: string;
      /** Its number in the room: a gap is what this client missed. Own messages take numbers, too. */
      seq: number;
    }
    interface Member {
      id: string;
      name?: string;
      picture?: string;
    }
    /** Somebody in the room. */
    interface Present {
      client_id: string;
      /** Who it is, if it joined with `identify` and has signed in. Where very many are in the room, pictures and names may be missing. */
      user?: Member;
    }
    interface Events {
      /** The room is open, for the first time or again. A `seq` below the last one that was heard: the room counts anew. */
      open: { client_id: string; room: string; members: number; seq: number; list: Present[] };
      message: Message;
      /** How many are in the room, and who, this client included. */
      presence: { members: number; list: Present[] };
      join: Present;
      leave: Present;
      /** The connection is lost or closed; unless `state` is `closed`, it is being opened again. */
      close: { code: number; reason: string };
      /** A message was refused, or the room cannot be reached (`unreachable`). */
      error: SvcError & { client_message_id?: string };
    }
    interface Room {
      readonly id: string;
      readonly state: 'connecting' | 'open' | 'closed';
      /** Members of the room now, this client included, in the order of joining; empty while not open. */
      readonly members: Present[];
      /** False while not open; nothing is queued. */
      send(type: string, data?: unknown, clientMessageId?: string): boolean;
      /** Calls back at each event; returns how to stop that. */
      on<E extends keyof Events>(event: E, cb: (e: Events[E]) => void): () => void;
      close(): void;
    }
    /** Joins a room of this page's backend, and again whenever the connection is lost; with `identify`, the others are told who has signed in here. */
    function room(id: string, opts?: { reconnect?: boolean; identify?: boolean }): Room;
  }

  /** A price that can be bought. */
  interface Offer {
    id: string;
    /** A name that a checkout takes in place of the id. */
    key: string | null;
    /** The product's name. */
    product: string;
    description: string | null;
    label: string;
    /** In minor units of the currency, such as cents. */
    amount: number;
    currency: string;
    /** Paid again and again: every month, unless `interval` says otherwise. */
    recurring: boolean;
    /** How often it is paid, where that is not every month. */
    interval?: 'year';
  }

  /** What this visitor has paid for, and has now. */
  interface Payment {
    price: string;
    status: 'paid';
    /** In minor units of the currency, such as cents. */
    amount: number;
    currency: string;
    user_id?: string;
    email?: string;
    created_at: string;
    /** By what the visitor was recognised. */
    matched_by: 'user_id' | 'email' | 'cookie';
  }

  namespace payments {
    /** Lists what is on sale here. */
    function catalog(): Promise<Offer[]>;
    /** Takes the id or the key of a price. Leaves the page for the checkout. The visitor comes back to `returnTo` (else to where they are) with `?checkout=success` or `=canceled`, which proves nothing. */
    function checkout(price: string, opts?: { returnTo?: string }): Promise<never>;
    /** Says what counts now: refunded and ended purchases are not there. */
    function status(): Promise<{ payments: Payment[] }>;
  }
}
