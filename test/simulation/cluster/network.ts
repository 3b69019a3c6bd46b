/**
 * What lies between a process and the servers: every call takes time, and may get lost on its way there or back.
 *
 * A call is one event: its effect comes at once or after a while, its answer after a while or at once. What was sent
 * takes effect also when its sender dies meanwhile. A lost answer and a lost request look the same to the caller, who
 * gives up after a time of its own; a request that was held up takes effect even later than that.
 */
import type { VirtualClock } from '../../support/virtual-clock.ts';
import type { Process } from './process.ts';
import type { Random } from './random.ts';

/** The kinds of servers, each with leaders of its own. */
export const SERVERS = ['bus', 'kv', 'chunks'] as const;
export type Server = (typeof SERVERS)[number];

/** What becomes of a call. */
type Fate = 'answered' | 'request lost' | 'answer lost' | 'late';

export interface NetworkRates {
  /** Longest time of an ordinary call, ms. */
  latencyMs: number;
  /** How often a call gets lost on its way there, on its way back, or is held up. */
  requestLost: number;
  answerLost: number;
  late: number;
}

const GIVE_UP_MS_MAX = 1_500;
const LATE_MS_MAX = 3_000;

class NoAnswer extends Error {
  constructor() {
    super('no answer');
    this.name = 'NoAnswer';
  }
}

export class Network {
  readonly rates: NetworkRates = { latencyMs: 5, requestLost: 0, answerLost: 0, late: 0 };
  /** Who does what takes effect just now. */
  actor: Process | undefined;
  private readonly clock: VirtualClock;
  private readonly random: Random;
  /** Until when a server answers nobody. */
  private readonly awayUntil = new Map<Server, number>();

  constructor(clock: VirtualClock, random: Random) {
    this.clock = clock;
    this.random = random;
  }

  /** A server has no leader for a while. */
  away(server: Server, ms: number): void {
    this.awayUntil.set(server, this.clock.now() + ms);
  }

  /** All is well from here on. */
  heal(): void {
    this.awayUntil.clear();
    Object.assign(this.rates, { latencyMs: 5, requestLost: 0, answerLost: 0, late: 0 });
  }

  call<T>(process: Process, server: Server, effect: () => Promise<T>): Promise<T> {
    const { clock, random } = this;
    return new Promise((resolve, reject) => {
      // Code of a dead process does nothing.
      if (process.isDead || process.burns()) return;
      const act = (): Promise<T> => {
        this.actor = process;
        const result = effect();
        this.actor = undefined;
        return result;
      };
      const answer = (result: Promise<T>): void => process.deliver(() => void result.then(resolve, reject));
      const fate = this.fate(process, server);
      if (fate === 'answered') {
        const ms = 0.1 + random() * this.rates.latencyMs;
        if (random() < 0.5) {
          const result = act();
          // Somebody must look at a failure, also when the answer never arrives.
          result.catch(() => {});
          clock.after(ms, () => answer(result));
        } else clock.after(ms, () => answer(act()));
        return;
      }
      const givesUpMs = random() * GIVE_UP_MS_MAX;
      if (fate === 'answer lost') act().catch(() => {});
      if (fate === 'late') clock.after(givesUpMs + random() * LATE_MS_MAX, () => void act().catch(() => {}));
      clock.after(givesUpMs, () => process.deliver(() => reject(new NoAnswer())));
    });
  }

  private fate(process: Process, server: Server): Fate {
    if ((this.awayUntil.get(server) ?? 0) > this.clock.now()) return 'request lost';
    const cut = process.cutOff.get(server);
    if (cut !== undefined) return cut;
    const { requestLost, answerLost, late } = this.rates;
    if (requestLost + answerLost + late === 0) return 'answered';
    const draw = this.random();
    if (draw < requestLost) return 'request lost';
    if (draw < requestLost + answerLost) return 'answer lost';
    return draw < requestLost + answerLost + late ? 'late' : 'answered';
  }
}
