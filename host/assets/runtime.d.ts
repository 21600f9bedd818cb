// Typings of the runtime that a project's frontends are given as `window.svc`.
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
    /** Calls a named action of the project's backend. */
    function op<T = Row>(action: string, params?: Params): Promise<Result<T>>;

    interface Op {
      action: string;
      /** A value, or what the first row of an earlier op has in a column. */
      params?: Record<string, Value | { from: [op: number, column: string] }>;
    }
    /** Calls actions, at most 20, in one transaction: all of them, or none. An error's `details.index` says which failed. */
    function batch<T = Row>(ops: Op[]): Promise<Result<T>[]>;
  }

  interface User {
    id: string;
    email?: string;
    name?: string;
    picture?: string;
    provider?: string;
    locale?: string;
    expiresAt?: string;
  }

  namespace auth {
    /** The signed-in visitor, or null. */
    function user(opts?: { refresh?: boolean }): Promise<User | null>;
    /** Leaves the page for the sign-in. */
    function login(opts?: { provider?: string; returnTo?: string }): void;
    function logout(): Promise<void>;
    /** Calls back when the visitor changes; answers how to stop that. */
    function onChange(cb: (u: User | null) => void): () => void;
  }

  interface Room {
    readonly id: string;
    readonly state: 'connecting' | 'open' | 'closed';
    /** False while not open; nothing is queued. */
    send(type: string, data?: unknown, clientMessageId?: string): boolean;
    on(
      ev: 'open' | 'message' | 'presence' | 'join' | 'leave' | 'close' | 'error',
      cb: (e: any) => void,
    ): () => void;
    close(): void;
  }

  namespace ws {
    function room(id: string, opts?: { reconnect?: boolean }): Room;
  }

  interface Payment {
    price: string;
    status: string;
    amount: number;
    currency: string;
    user_id?: string;
    email?: string;
    created_at: string;
  }

  namespace payments {
    /** Leaves the page for the checkout. */
    function checkout(price: string, opts?: { returnTo?: string }): Promise<never>;
    function status(): Promise<{ payments: Payment[] }>;
  }
}
