/**
 * Where the EDGES streams end, asked of NATS at most every 250 ms per graph, however many requests want to know.
 */
import { edgesLog } from '../../libs/dataflow/names.ts';
import type { Bus, Clock, LogState } from '../../libs/stage/ports.ts';

const KEEP_MS = 250;

export class EdgesEnds {
  private readonly bus: Bus;
  private readonly clock: Clock;
  private readonly known = new Map<
    string,
    { readonly asked: number; readonly state: Promise<LogState | undefined> }
  >();

  constructor(bus: Bus, clock: Clock) {
    this.bus = bus;
    this.clock = clock;
  }

  /** Undefined: there is no such stream. */
  async of(graph: string): Promise<LogState | undefined> {
    const now = this.clock.now();
    const known = this.known.get(graph);
    if (known !== undefined && now - known.asked < KEEP_MS) return await known.state;
    for (const [name, { asked }] of this.known) if (now - asked >= KEEP_MS) this.known.delete(name);
    const state = this.bus.describe(edgesLog(graph).stream);
    this.known.set(graph, { asked: now, state });
    return await state;
  }

  /** The stream was created or removed by this gateway. */
  forget(graph: string): void {
    this.known.delete(graph);
  }
}
