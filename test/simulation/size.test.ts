/** States of real size: beyond what a JavaScript Map holds, and what one worker and one view must carry. */
import { describe, expect, it } from 'vitest';
import { ArrowBatchBuilder } from '../../libs/dataflow/arrow-payload.ts';
import { ByteReader } from '../../libs/dataflow/bytes.ts';
import { NONE } from '../../libs/graph/columns.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import { VertexTable } from '../../libs/graph/vertex-table.ts';
import { View } from '../../services/gateway/view.ts';
import { CorePipeline, GRAPH_ID } from '../support/core-pipeline.ts';

const MINUTES = 60_000;

describe('the vertex table', () => {
  it('goes on beyond 2^24 ids, where a Map ends', { timeout: 5 * MINUTES }, () => {
    const table = new VertexTable();
    const id = viewOf(new Uint8Array(5));
    const count = 2 ** 24 + 100_000;
    const setId = (n: number): void => {
      id.setUint32(0, n);
      id.setUint8(4, n & 0x7f);
    };
    for (let n = 0; n < count; n++) {
      setId(n);
      if (table.findOrAdd(id, 0, 5, hashId(id, 0, 5)) !== n) throw new Error(`id ${n} has another row`);
    }
    expect(table.count).toBe(count);
    for (let n = 0; n < count; n += 997) {
      setId(n);
      expect(table.find(id, 0, 5, hashId(id, 0, 5))).toBe(n);
    }
    setId(count);
    expect(table.find(id, 0, 5, hashId(id, 0, 5))).toBe(NONE);
  });
});

describe('ten million vertices', () => {
  it('run in one worker and one view, within their bytes per vertex, and come back from blocks', {
    timeout: 10 * MINUTES,
  }, () => {
    const vertices = 10_000_000;
    const perMessage = 4_000;
    const pipeline = new CorePipeline(1);
    const builder = new ArrowBatchBuilder();
    const bytes = new Uint8Array(24);
    const write = (vertex: number, at: number): void => {
      let rest = vertex;
      for (let digit = 11; digit >= 0; digit--) {
        bytes[at + digit] = 48 + (rest % 10);
        rest = Math.floor(rest / 10);
      }
    };
    // Chains of 1,000: vertex n hangs on n - 1 unless it begins a chain, which it does with a loop.
    for (let vertex = 0; vertex < vertices; ) {
      for (let edge = 0; edge < perMessage; edge++, vertex++) {
        write(vertex, 0);
        write(vertex % 1000 === 0 ? vertex : vertex - 1, 12);
        builder.append(bytes, 0, 12, bytes, 12, 24);
      }
      pipeline.publish(builder.finish(), 'application/vnd.apache.arrow.stream');
      pipeline.partitioner.read(0, 1);
      pipeline.partitioner.cut();
      pipeline.workers[0]!.read(0, 9);
      pipeline.workers[0]!.cut();
      pipeline.gateway.read(0, 9);
      while (pipeline.gateway.advance());
      pipeline.gateway.cut();
      pipeline.forget();
    }
    const { view } = pipeline;
    const worker = pipeline.workers[0]!.core;
    expect(view.forest.rows).toBe(vertices);
    expect(view.forest.rows - view.forest.links).toBe(vertices / 1000);
    expect(worker.vertexCount).toBe(vertices);
    expect(worker.byteLength / vertices).toBeLessThan(64);
    expect(view.byteLength / vertices).toBeLessThan(100);
    const fresh = new View({ graphId: GRAPH_ID, origin: 1 }, { visible() {}, advanced() {} });
    for (const piece of view.copy()) fresh.restore(new ByteReader(piece));
    expect(fresh.sequence).toBe(view.sequence);
    expect(fresh.messages.totals).toEqual(view.messages.totals);
    expect(fresh.forest.order.page(undefined, 50)).toEqual(view.forest.order.page(undefined, 50));
    for (let link = 0; link < view.forest.links; link += 9_973)
      expect(fresh.forest.link(link)).toEqual(view.forest.link(link));
  });
});
