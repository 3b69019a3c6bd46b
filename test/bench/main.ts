/** `npm run bench [name …]`: every figure with its rival in the same run. Results: README.md beside this file. */
import { cpus } from 'node:os';
import { benchFailOver, benchSnapshots } from './cluster.bench.ts';
import { benchFlat } from './flat.bench.ts';
import { benchMemory } from './memory.bench.ts';
import { benchPartitioning, benchPartitioningStage } from './partitioning.bench.ts';
import { benchEndToEnd, benchLatency } from './pipeline.bench.ts';
import { benchVertexTable } from './vertex-table.bench.ts';
import { benchWorker } from './worker.bench.ts';

const benches: Record<string, () => string[] | Promise<string[]>> = {
  'vertex-table': benchVertexTable,
  worker: benchWorker,
  memory: benchMemory,
  partitioning: benchPartitioning,
  'partitioning-stage': benchPartitioningStage,
  'end-to-end': benchEndToEnd,
  latency: benchLatency,
  flat: benchFlat,
  snapshots: benchSnapshots,
  'fail-over': benchFailOver,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => benches[name] === undefined);
if (unknown.length > 0) {
  console.error(`no bench ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
console.log(
  `${new Date().toISOString()}, Node.js ${process.version}, ${cpus().length} × ${cpus()[0]?.model}`,
);
for (const [name, bench] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log();
  for (const line of await bench()) console.log(line);
}
