/**
 * What the gateway measures of itself, for Prometheus. The process makes one, before there are graphs to measure.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, Histogram, Registry } from 'prom-client';

const NANOSECONDS = 1e9;

export class GatewayMetrics {
  readonly registry = new Registry();
  private readonly now: () => number;
  private readonly started: number;
  private readonly edgeToVisible: Histogram<'graph'>;
  private readonly requests: Histogram<'route' | 'method' | 'status'>;
  private readonly loopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: 10 });

  /** `now`: ms since 1970. */
  constructor(now: () => number) {
    const { registry, loopDelay } = this;
    const registers = [registry];
    this.now = now;
    this.started = now();
    this.edgeToVisible = new Histogram({
      name: 'watershed_edge_to_visible_seconds',
      help: "From the arrival of a message in EDGES until its edges are in this gateway's answers.",
      labelNames: ['graph'],
      buckets: [0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 15, 60],
      registers,
    });
    this.requests = new Histogram({
      name: 'watershed_http_request_duration_seconds',
      help: 'From the head of a request until its answer is sent.',
      labelNames: ['route', 'method', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    });
    new Gauge({
      name: 'watershed_process_resident_bytes',
      help: 'Memory of the process.',
      registers,
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
    new Gauge({
      name: 'watershed_event_loop_delay_p99_seconds',
      help: 'How late timers of the process ran since the last scrape, 99th percentile.',
      registers,
      collect() {
        this.set(loopDelay.count === 0 ? 0 : loopDelay.percentile(99) / NANOSECONDS);
        loopDelay.reset();
      },
    });
  }

  start(): void {
    this.loopDelay.enable();
  }

  stop(): void {
    this.loopDelay.disable();
  }

  /**
   * An EDGES message of the graph that arrived at `time` (ms since 1970) is now in the answers: what a view's
   * observer is to call. One from before the process began says nothing of its speed.
   */
  visible(graph: string, time: number): void {
    if (time >= this.started) this.edgeToVisible.observe({ graph }, Math.max(0, this.now() - time) / 1000);
  }

  /** The graph was removed. */
  forget(graph: string): void {
    this.edgeToVisible.remove({ graph });
  }

  answered(route: string, method: string, status: number, ms: number): void {
    this.requests.observe({ route, method, status: String(status) }, ms / 1000);
  }
}
