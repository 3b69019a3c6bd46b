/** A progress bar on stderr, for a person who watches; whoever reads a log gets the lines only. */

import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';

export class Progress {
  private readonly stderr: Writable;
  private readonly bar: SingleBar | undefined;
  private readonly hasTotal: boolean;

  /** Without `total` there is no bar and no percentage, only the text of the last update. */
  constructor(stderr: Writable, isTTY: boolean, total: number | undefined) {
    this.stderr = stderr;
    this.hasTotal = total !== undefined;
    if (!isTTY) return;
    this.bar = new SingleBar({
      stream: stderr as NodeJS.WritableStream,
      format: this.hasTotal ? '{bar} {percentage}%  {text}' : '{text}',
      barsize: 30,
      clearOnComplete: true,
      // Both would have to be undone at Ctrl-C, and the bar's own handler keeps Ctrl-C from ending the process.
      hideCursor: false,
      linewrap: true,
      gracefulExit: false,
    });
    this.bar.start(Math.max(1, total ?? 1), 0, { text: '' });
  }

  /** `done` of the total; `text` says more. */
  update(done: number, text: string): void {
    this.bar?.update(this.hasTotal ? done : 0, { text });
  }

  /** A line above the bar. */
  note(line: string): void {
    this.stderr.write(this.bar === undefined ? `${line}\n` : `\r\x1b[K${line}\n`);
  }

  stop(): void {
    this.bar?.stop();
  }
}
