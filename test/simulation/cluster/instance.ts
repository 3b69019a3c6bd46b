/** A running process of Watershed, wired as services/cli/instance.ts does, on simulated servers and disks. */

import { MemoryQuestions } from '../../../libs/bus/memory-questions.ts';
import { Registry } from '../../../libs/bus/registry.ts';
import { Member } from '../../../libs/cluster/member.ts';
import type { GraphConfig } from '../../../libs/dataflow/graph-config.ts';
import type { Log } from '../../../libs/stage/ports.ts';
import type { MemoryDisk } from '../../../libs/store/memory-store.ts';
import type { RunnableTask } from '../../../services/cli/hosted-graph.ts';
import { HostedGraphs } from '../../../services/cli/hosted-graphs.ts';
import type { View } from '../../../services/gateway/view.ts';
import type { Process } from './process.ts';

const GRAPHS_POLL_MS = 500;

/** The disks of an instance by folder; they outlive its processes. */
export type Disks = Map<string, MemoryDisk>;

export interface InstanceOptions {
  readonly incarnation: string;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly log: Log;
  readonly disks: Disks;
  readonly newDisk: (task: string) => MemoryDisk;
  /** Told when a view may hold more than before. */
  readonly advanced: (view: View) => void;
}

export class Instance {
  readonly name: string;
  readonly incarnation: string;
  readonly process: Process;
  readonly graphs: HostedGraphs;
  readonly member: Member<RunnableTask>;
  isLeaving = false;
  hasLeft = false;
  private readonly options: InstanceOptions;

  constructor(process: Process, options: InstanceOptions) {
    this.process = process;
    this.options = options;
    const { name, clock, bus, kv, chunks } = process;
    const { incarnation, leaseMs, pollMs, log } = options;
    this.name = name;
    this.incarnation = incarnation;
    this.graphs = new HostedGraphs({
      registry: new Registry(kv),
      folders: (config) => this.folders(config),
      isGateway: true,
      stage: { bus, clock, log },
      snapshots: { kv, chunks, clock, log, instance: name },
      questions: new MemoryQuestions(),
      visible: () => {
        const { view } = this;
        if (view !== undefined) options.advanced(view);
      },
    });
    this.member = new Member(
      {
        name,
        incarnation,
        roles: ['partitioner', 'worker', 'gateway'],
        leaseMs,
        pollMs,
        kv,
        clock,
        log,
        report: () => ({}),
      },
      () => this.graphs.specs,
      (spec) => spec.run(),
    );
  }

  get view(): View | undefined {
    return this.graphs.hosts[0]?.view;
  }

  get isUp(): boolean {
    return !this.process.isDead && !this.process.isSuspended && !this.isLeaving;
  }

  start(): void {
    this.member.start();
    void this.follow();
  }

  /** Hands its tasks over and ends. */
  async leave(): Promise<void> {
    this.isLeaving = true;
    await this.member.stop();
    await this.graphs.stop();
    this.hasLeft = true;
    this.process.kill();
  }

  private async follow(): Promise<void> {
    while (!this.isLeaving) {
      try {
        await this.graphs.follow();
      } catch {
        // Tried again.
      }
      await this.process.clock.sleep(GRAPHS_POLL_MS);
    }
  }

  private folders({
    name,
    id,
  }: GraphConfig): ReturnType<ConstructorParameters<typeof HostedGraphs>[0]['folders']> {
    const { disks, newDisk } = this.options;
    const prefix = `${name}-${id.slice(0, 8)}/`;
    return {
      open: async (task) => {
        let disk = disks.get(prefix + task);
        if (disk === undefined) {
          disk = newDisk(task);
          disks.set(prefix + task, disk);
        }
        return await this.process.open(disk);
      },
      list: async () =>
        [...disks.keys()]
          .filter((folder) => folder.startsWith(prefix))
          .map((folder) => folder.slice(prefix.length)),
      remove: async (task) => void disks.delete(prefix + task),
      removeAll: async () => {
        for (const folder of [...disks.keys()]) if (folder.startsWith(prefix)) disks.delete(folder);
      },
    };
  }
}
