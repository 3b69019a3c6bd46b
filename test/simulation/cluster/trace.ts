/** What happened in a schedule, a line each: virtual ms, who, what. Off, it costs nothing. */
import type { Log } from '../../../libs/stage/ports.ts';

export class Trace {
  readonly lines: string[] = [];
  readonly isOn: boolean;
  private readonly now: () => number;

  constructor(isOn: boolean, now: () => number) {
    this.isOn = isOn;
    this.now = now;
  }

  note(who: string, what: string, fields?: object): void {
    if (!this.isOn) return;
    const details = fields === undefined ? '' : ` ${JSON.stringify(fields)}`;
    this.lines.push(`${this.now().toFixed(1).padStart(9)}  ${who.padEnd(8)}  ${what}${details}`);
  }

  /** What a process says of itself. */
  logOf(who: string): Log {
    return {
      info: (fields, message) => this.note(who, message, fields),
      warn: (fields, message) => this.note(who, `! ${message}`, fields),
      error: (fields, message) => this.note(who, `!! ${message}`, fields),
    };
  }
}
