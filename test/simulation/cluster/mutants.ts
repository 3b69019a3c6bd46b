/**
 * Faults put into the protocol on purpose: each is a change of a line or two that a tired engineer could make. The
 * schedules must find it, or another layer masks it, and then it is said which.
 *
 * `find` must stand in the file exactly once, so that a mutant whose place has changed is noticed.
 */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Why no schedule can find it; absent: one does. */
  readonly masked?: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'commit before the append is acknowledged',
    file: 'libs/stage/stage-task.ts',
    find: `    await this.append(core, cut, outputs);
    if (isBarrier) await chain.appendAtBarrier(position, cut.increment, digest);
    else await chain.append(position, cut.increment);
`,
    replace: `    if (isBarrier) await chain.appendAtBarrier(position, cut.increment, digest);
    else await chain.append(position, cut.increment);
    await this.append(core, cut, outputs);
`,
  },
  {
    name: 'no fence frame',
    file: 'libs/stage/stage-task.ts',
    find: 'if (frame !== undefined && !(await output.tryAppend(frame))) return false;',
    replace: '',
  },
  {
    name: 'the term does not rise',
    file: 'libs/stage/stage-task.ts',
    find: 'this.term = 1 + Math.max(0,',
    replace: 'this.term = Math.max(1,',
  },
  {
    name: 'an output that moved while it was fenced is not read again',
    file: 'libs/stage/stage-task.ts',
    find: '      newest = await this.openOutputs(core, outputs);\n',
    replace: '      await this.openOutputs(core, outputs);\n',
    masked:
      'rare: another owner must append in the few milliseconds between the opening of an output and its fence',
  },
  {
    name: 'a state ahead of its output is gone on from, if the output was cut while it was fenced',
    file: 'libs/stage/stage-task.ts',
    find: 'if (isAhead && core.bindsState(at)) {',
    replace: 'if (false) {',
    masked: 'rare: the output must lose its tail in the few milliseconds between its opening and its fence',
  },
  {
    name: 'a mark is passed on after the commit of what follows',
    file: 'services/worker/worker.ts',
    find: '    this.dueMark = mark;\n',
    replace: '    if (this.barrier >= 0 && mark.number % 2 === 0) this.dueMark = mark;\n',
  },
  {
    name: 'suppression without the hash check',
    file: 'libs/dataflow/channel.ts',
    find: 'if (this.count !== count || !sameLanes(this.hash.lanes, hash)) {',
    replace: 'if (false) {',
  },
  {
    name: 'suppressed frames are written again',
    file: 'libs/dataflow/channel.ts',
    find: 'this.startFrame(comparePositions(state.through, logEnd.through) < 0 ? logEnd.through : state.through);',
    replace: 'this.startFrame(state.through);',
  },
  {
    name: 'a watermark beyond the last whole message',
    file: 'services/partitioner/partitioner.ts',
    find: 'const watermark = behindMessage(this.last.sequence);',
    replace: 'const watermark = behindMessage(this.last.sequence + 1);',
  },
  {
    name: 'half a message counts as a whole one',
    file: 'services/gateway/view.ts',
    find: 'const reached = Math.min(limit, nextSequence - 1);',
    replace: 'const reached = Math.min(limit, nextSequence);',
  },
  {
    name: 'off by one at restore',
    file: 'services/partitioner/partitioner.ts',
    find: '      read: [this.last],\n',
    replace: '      read: [{ ...this.last, sequence: this.last.sequence + 1 }],\n',
  },
  {
    name: 'manifest with P - 1 parts',
    file: 'libs/snapshot/keeper.ts',
    find: 'if (found.length !== barrier.partitions + 2) continue;',
    replace:
      'if (found.length < barrier.partitions + 1 || !found.some(({ task }) => task === VIEW_PART) || !found.some(({ task }) => task === PARTITIONER_PART)) continue;',
  },
  {
    name: 'the barrier is not recorded first',
    file: 'libs/snapshot/graph-marks.ts',
    find: "if (!(await this.records.create('barrier', String(barrier), record))) continue;",
    replace: "void this.records.create('barrier', String(barrier), record).catch(() => {});",
  },
  {
    name: 'recorded barriers are not marked again',
    file: 'libs/snapshot/graph-marks.ts',
    find: '.filter((barrier) => barrier.generation === generation && barrier.sequence >= sequence)',
    replace: '.filter(() => false)',
    masked: 'a newer barrier takes its place',
  },
  {
    name: 'marks behind one message in any order',
    file: 'services/gateway/view.ts',
    find: 'a.sequence - b.sequence || compareMarks(a.mark, b.mark)',
    replace: "a.sequence - b.sequence || (a.mark.kind === 'barrier' ? -1 : 1)",
  },
  {
    name: 'a mark that was had is had again',
    file: 'services/worker/worker.ts',
    find: "    if (mark.kind === 'barrier' && mark.number <= this.barrier) return;\n",
    replace: '',
  },
  {
    name: 'the view goes on beyond a barrier',
    file: 'services/gateway/view.ts',
    find: '      coming?.sequence ?? Number.POSITIVE_INFINITY,\n',
    replace: '      Number.POSITIVE_INFINITY,\n',
  },
  {
    name: 'a part of another barrier',
    file: 'libs/snapshot/keeper.ts',
    find: '    part.barrier === barrier &&\n',
    replace: '',
  },
  {
    name: 'purge behind the newest snapshot only',
    file: 'libs/snapshot/keeper.ts',
    find: '        ...kept.map(({ parts }) =>',
    replace: '        ...kept.slice(0, 1).map(({ parts }) =>',
  },
  {
    name: 'purge of the message that a snapshot has read last',
    file: 'libs/snapshot/keeper.ts',
    find: 'await bus.purge(stream, sequence);',
    replace: 'await bus.purge(stream, sequence + 1);',
  },
  {
    name: 'old generations removed too early',
    file: 'libs/snapshot/keeper.ts',
    find: 'const oldest = Math.min(...kept.map(({ generation }) => generation));',
    replace: 'const oldest = Math.max(...kept.map(({ generation }) => generation));',
  },
  {
    name: 'a kept snapshot is dropped',
    file: 'libs/snapshot/keeper.ts',
    find: 'if (barrier >= oldest || held.includes(barrier) || isBase(barrier)) continue;',
    replace: 'if (barrier > oldest || held.includes(barrier)) continue;',
  },
  {
    name: 'a damaged chunk is accepted',
    file: 'libs/store/memory-chunks.ts',
    find: "return sha256(bytes) === name ? bytes.slice() : 'damaged';",
    replace: 'return bytes.slice();',
  },
  {
    name: 'blocks are not checked',
    file: 'libs/stage/block-chain.ts',
    find: 'if (!sameLanes(checksum(before, body), recorded)) return undefined;',
    replace: '',
  },
  {
    name: 'a block is kept although an output holds less',
    file: 'libs/stage/restore.ts',
    find: '!core.bindsState(at) || comparePositions(through, this.ends[at]!.end.through) <= 0,',
    replace: 'true,',
  },
  {
    name: 'position not in the batch',
    file: 'libs/stage/block-chain.ts',
    find: '    await this.store.write(this.block(position, WHOLE, payload), [], false);\n',
    replace: `    const puts = this.block(position, WHOLE, payload);
    await this.store.write(puts.slice(-1), [], true);
    await this.store.write(puts.slice(0, -1), [], false);
`,
    masked:
      'the head names the checksum of its block, so a head without it shows as damage, and what is missing is replayed',
  },
  {
    name: 'reader without gap check',
    file: 'libs/dataflow/channel.ts',
    find: 'if (comparePositions(header.from, watermark) > 0) {',
    replace: 'if (false) {',
    masked: 'the running hash shows the same gap',
  },
  {
    name: 'reader without hash check',
    file: 'libs/dataflow/channel.ts',
    find: 'if (this.count !== header.count || !sameLanes(this.hash.lanes, header.hash)) {',
    replace: 'if (false) {',
    masked:
      'the writer goes on only from a log whose hash it reproduces, and the gap check shows what is missing',
  },
  {
    name: 'reader without gap and hash check',
    file: 'libs/dataflow/channel.ts',
    find: '    const header = readFrame(frame, columns);\n    this.checkIdentity(header);\n',
    replace:
      '    const header = readFrame(frame, columns);\n    if (comparePositions(header.from, this.watermark) > 0) this.resume({ through: header.from, count: header.count - columns.count, hash: header.hash });\n',
  },
  {
    name: 'a lease is taken without compare-and-set',
    file: 'libs/cluster/member.ts',
    find: 'if (entry !== undefined) await this.write(key, lease);\n',
    replace: 'if (entry !== undefined) await this.kv.put(LEASES_BUCKET, key, leaseText(lease));\n',
    masked: 'leases are for liveness: the fence keeps two owners apart (test/libs/cluster finds it)',
  },
  {
    name: 'end of generation without its place',
    file: 'libs/snapshot/graph-marks.ts',
    find: 'partitions, after: sequence, partitioner };',
    replace: 'partitions, after: 0, partitioner };',
  },
  {
    name: 'carry-over state forgotten',
    file: 'services/partitioner/task.ts',
    find: '        core.carry(new ByteReader(state));\n',
    replace: '',
  },
  {
    name: 'a generation that ends at once forgets where it stands',
    file: 'services/partitioner/partitioner.ts',
    find: '      this.context.edges = last;\n',
    replace: '',
    masked: 'rare: not found in 2,000 schedules; the state is written again with the first message',
  },
  {
    name: 'seed without rebase',
    file: 'services/partitioner/task.ts',
    find: 'return { inputs: [{ ...inputs[0]!, created }], outputs: core.starts, barrier: 0 };',
    replace: 'return { inputs: [{ ...LOG_START, created }], outputs: core.starts, barrier: 0 };',
  },
  {
    name: 'a retry of a producer counts again',
    file: 'services/partitioner/partitioner.ts',
    find: "if (taken.kind === 'new') this.decode(message);",
    replace: "if (taken.kind !== 'rejected') this.decode(message);",
  },
  {
    name: 'what is known of producers is not in the increment',
    file: 'services/partitioner/partitioner.ts',
    find: '    this.producers.writeIncrement(increment);\n',
    replace: '    new Producers().writeIncrement(increment);\n',
  },
  {
    name: 'a conflict counts as stored',
    file: 'libs/stage/output.ts',
    find: "        if (this.stopping()) throw new Error('stopped while an append had no answer');\n",
    replace: "        if (result.kind === 'conflict') break;\n",
  },
  {
    name: 'an append without an answer is repeated without a look at the log',
    file: 'libs/stage/output.ts',
    find: '        isStored = await this.recognise(payload);\n',
    replace: '        this.last = (await this.describe())!.last;\n',
  },
  {
    name: 'an append without an answer counts as stored',
    file: 'libs/stage/output.ts',
    find: '        isStored = await this.recognise(payload);\n',
    replace:
      "        if (result.kind === 'unknown') {\n          this.last += 1;\n          break;\n        }\n        isStored = await this.recognise(payload);\n",
  },
  {
    name: 'a rebuilt graph keeps the tasks of before',
    file: 'services/cli/hosted-graph.ts',
    find: 'if (origin !== this.origin) return [];',
    replace: '',
  },
  {
    name: 'a reader does not notice that its log lost its end',
    file: 'libs/stage/input.ts',
    find: 'return error instanceof LogError;',
    replace: 'return false;',
  },
  {
    name: 'a worker whose generation has ended does not look after its log',
    file: 'services/worker/task.ts',
    find: 'next: () => false,',
    replace: '',
    masked: 'what is lost of a generation that has ended is named, and the graph rebuilt',
  },
  {
    name: 'only who holds the lease at the barrier stores the view',
    file: 'libs/snapshot/task-snapshots.ts',
    find: 'if (this.options.stores()) return await this.store(job, isOver);',
    replace: 'return this.options.stores() ? await this.store(job, isOver) : undefined;',
  },
  {
    name: 'a state that is damaged on disk is left so',
    file: 'libs/snapshot/task-snapshots.ts',
    find: '      blocks.damaged();\n',
    replace: '',
  },
];
