/** What a checker is told, as it happens; each checker watches over one invariant. */
import type { LogMessage } from '../../../../libs/stage/ports.ts';
import type { View } from '../../../../services/gateway/view.ts';

export interface Checker {
  /** A process has appended a message; `before`: the payload that was the log's last until then. */
  stored?(stream: string, message: LogMessage, by: string, before: Uint8Array | undefined): void;
  /** A process has removed all below a sequence. */
  purged?(stream: string, sequence: number): void;
  /** A process has removed a log. */
  removed?(stream: string): void;
  /** A fault has changed a log behind everybody's back. */
  tampered?(stream: string): void;
  /** A record was written; undefined: removed. */
  recorded?(bucket: string, key: string, value: string | undefined): void;
  /** A task of an instance commits: what it writes to its disk, by key. */
  commits?(task: string, puts: readonly (readonly [key: string, value: Uint8Array])[], by: string): void;
  /** A view may hold more than before. */
  advanced?(view: View, by: string): void;
  /** Somebody asks a view. */
  asked?(view: View, by: string): void;
  /** All is well and has come to rest. */
  rested?(): Promise<void>;
}

/** Says what is broken. */
export type Breach = (what: string) => void;
