/**
 * The answers, computed from a view.
 *
 * Each is a function of the view and a sequence S that the view has reached, and of nothing that came after S:
 * it looks at the rows and links of the cut at S only. So an answer as of S is the same now and later, in every
 * gateway, for any number of partitions; that an answer is "live" only means that S is the view's own.
 *
 * Rows number the vertices in order of arrival, so the oldest vertex of a component is its lowest row.
 */
import type { ComponentAnswer, ComponentsPage, MembersPage } from '../../libs/api/component.ts';
import type { Arrival, AsOf, Component } from '../../libs/api/fields.ts';
import type { Totals } from '../../libs/api/graph.ts';
import type { PartitionVertices } from '../../libs/api/partitioner.ts';
import type { Connection, ExportRow, LookupAnswer, Vertex } from '../../libs/api/vertex.ts';
import { NONE } from '../../libs/graph/columns.ts';
import type { Cut } from '../../libs/graph/component-forest.ts';
import { BestRanked, comesBefore, type Ranked } from '../../libs/graph/size-order.ts';
import { findText } from '../../libs/graph/vertex-table.ts';
import {
  badCursor,
  type PartitionCursor,
  writeComponentsCursor,
  writeMembersCursor,
  writePartitionCursor,
} from './cursor.ts';
import { RequestProblem, shown } from './problems.ts';
import { idText } from './vertex-ids.ts';
import type { View } from './view.ts';

/** Rows looked at before other work is let in. */
const SLICE_ROWS = 8_192;

/** A view at a sequence that it has reached. */
export class Reading {
  readonly view: View;
  readonly sequence: number;
  readonly cut: Cut;
  /** Whether the sequence was asked for: then nothing is told that is of the present alone. */
  private readonly isPinned: boolean;

  constructor(view: View, sequence: number, isPinned = true) {
    this.view = view;
    this.sequence = sequence;
    this.isPinned = isPinned;
    this.cut = view.forest.cutAt(sequence);
  }

  get asOf(): AsOf {
    const { time } = this.view.messages.through(this.sequence);
    return { sequence: this.sequence, time: Number.isNaN(time) ? null : isoTime(time) };
  }

  get totals(): Totals {
    const { rows, links } = this.cut;
    const { edges, rejected } = this.view.messages.through(this.sequence);
    return { vertices: rows, components: rows - links, edges, rejected, sequence: this.sequence };
  }

  vertex(id: string): Vertex {
    const row = this.row(id);
    return {
      id,
      arrived: this.arrival(row),
      component: this.component(this.root(row)),
      ...(this.isPinned ? {} : { partitions: this.view.parts.partsOf(row) }),
      asOf: this.asOf,
    };
  }

  /** Vertices of a partition of the present layout, by arrival, with a pause (yield) after each slice of rows. */
  *partitionVertices(
    graphId: string,
    partition: number,
    cursor: PartitionCursor | undefined,
    limit: number,
  ): Generator<undefined, PartitionVertices> {
    const { parts, generation: layout } = this.view;
    const generation = layout?.generation ?? 1;
    if (partition >= parts.parts) {
      const detail = `the layout of generation ${generation} has partitions 0 to ${parts.parts - 1}, not ${partition}`;
      throw new RequestProblem('unknown-partition', detail);
    }
    if (cursor !== undefined && (cursor.generation !== generation || cursor.partition !== partition))
      throw badCursor();
    const { asOf } = this;
    const { rows } = this.cut;
    const vertices: string[] = [];
    let next: number | undefined;
    for (let row = cursor?.row ?? 0; row < rows; ) {
      const to = Math.min(rows, row + SLICE_ROWS);
      const found = parts.next(partition, row, to);
      if (found === NONE) {
        row = to;
        yield;
      } else if (vertices.length < limit) {
        vertices.push(this.id(found));
        row = found + 1;
      } else {
        next = found;
        break;
      }
    }
    return {
      partition,
      generation,
      vertices,
      asOf,
      ...(next === undefined
        ? {}
        : { nextCursor: writePartitionCursor(graphId, { generation, partition, row: next }) }),
    };
  }

  componentById(id: string): ComponentAnswer {
    return { ...this.component(this.root(this.componentRow(id))), asOf: this.asOf };
  }

  /** `cursorRow`: where the page begins; undefined: with the first member. */
  members(id: string, graphId: string, cursorRow: number | undefined, limit: number): MembersPage {
    const { forest } = this.view;
    const { rows, links } = this.cut;
    const root = this.root(this.componentRow(id));
    if (cursorRow !== undefined && (cursorRow >= rows || this.root(cursorRow) !== root)) throw badCursor();
    const vertices: string[] = [];
    let row = cursorRow ?? root;
    for (; row !== NONE && vertices.length < limit; row = forest.nextMember(row, links)) {
      vertices.push(this.id(row));
    }
    return {
      component: this.component(root),
      vertices,
      asOf: this.asOf,
      ...(row === NONE ? {} : { nextCursor: writeMembersCursor(graphId, { sequence: this.sequence, row }) }),
    };
  }

  /**
   * Components behind `after`, largest first. `isPinned`: the next page is to be as of the same sequence.
   *
   * The present order is kept by the forest; an earlier one is found by looking at all rows, with a pause
   * (yield) after each slice of them.
   */
  *components(
    graphId: string,
    after: Ranked | undefined,
    limit: number,
    isPinned: boolean,
  ): Generator<undefined, ComponentsPage> {
    // One more than asked for tells whether there is a next page.
    const ranked =
      this.sequence === this.view.sequence
        ? this.view.forest.order.page(after, limit + 1)
        : yield* this.scanComponents(after, limit + 1);
    const page = ranked.slice(0, limit);
    const last = page.at(-1);
    const sequence = isPinned ? this.sequence : undefined;
    return {
      components: page.map(({ oldest, size }) => ({ id: this.id(oldest), size })),
      asOf: this.asOf,
      ...(last === undefined || ranked.length === page.length
        ? {}
        : { nextCursor: writeComponentsCursor(graphId, { ...last, sequence }) }),
    };
  }

  connection(source: string, target: string): Connection {
    const { forest } = this.view;
    const a = this.row(source);
    const b = this.row(target);
    const connection = forest.connection(a, b, this.cut.links);
    const { asOf } = this;
    if (connection.kind === 'apart') return { source, target, connected: false, asOf };
    const component = this.component(this.root(a));
    if (connection.kind === 'same') {
      return { source, target, connected: true, component, since: this.arrival(a), asOf };
    }
    const link = forest.link(connection.link);
    const { sequence, index } = link;
    const arrival = this.arrivalTime(sequence);
    return {
      source,
      target,
      connected: true,
      component,
      since: { sequence, index, time: arrival },
      through: {
        source: this.id(link.source),
        target: this.id(link.target),
        time: Number.isNaN(link.time) ? arrival : isoTime(link.time),
        sequence,
        index,
      },
      asOf,
    };
  }

  lookup(ids: readonly string[]): LookupAnswer {
    const vertices = ids.map((id) => {
      const row = this.rowOrNone(id);
      return row === NONE ? { id } : { id, component: this.component(this.root(row)) };
    });
    return { vertices, asOf: this.asOf };
  }

  /** Every vertex with its component, in order of arrival. */
  *exportRows(): Generator<ExportRow> {
    const { forest } = this.view;
    const { rows, links } = this.cut;
    for (let row = 0; row < rows; row++) {
      yield { vertex: this.id(row), component: this.id(forest.oldest(this.root(row), links)) };
    }
  }

  private *scanComponents(after: Ranked | undefined, limit: number): Generator<undefined, Ranked[]> {
    const { forest } = this.view;
    const { rows, links } = this.cut;
    const best = new BestRanked(limit);
    for (let row = 0; row < rows; row++) {
      if (row % SLICE_ROWS === SLICE_ROWS - 1) yield;
      if (!forest.isRoot(row, links)) continue;
      const entry = { oldest: forest.oldest(row, links), size: forest.size(row, links) };
      if (after === undefined || comesBefore(after, entry)) best.offer(entry);
    }
    return best.list;
  }

  private rowOrNone(id: string): number {
    const row = findText(this.view.forest.vertices, id);
    return row < this.cut.rows ? row : NONE;
  }

  private row(id: string): number {
    const row = this.rowOrNone(id);
    if (row !== NONE) return row;
    const detail = `vertex ${shown(id)} has not arrived through sequence ${this.sequence}`;
    throw new RequestProblem('unknown-vertex', detail);
  }

  /**
   * The row of a vertex that names a component: its oldest one, or one that was, until the component was joined
   * to an older one. A vertex was its component's oldest if it was when it arrived; later it only grows older.
   */
  private componentRow(id: string): number {
    const { forest } = this.view;
    const row = this.row(id);
    const { links } = forest.cutAt(forest.arrivalSequence(row));
    if (forest.oldest(forest.root(row, links), links) === row) return row;
    const component = this.component(this.root(row));
    throw new RequestProblem(
      'not-a-component-id',
      `vertex ${shown(id)} is in component ${shown(component.id)}, but never was the oldest of one, which is what names it`,
      { componentId: component.id },
    );
  }

  private root(row: number): number {
    return this.view.forest.root(row, this.cut.links);
  }

  private component(root: number): Component {
    const { forest } = this.view;
    const { links } = this.cut;
    return { id: this.id(forest.oldest(root, links)), size: forest.size(root, links) };
  }

  private id(row: number): string {
    return idText(this.view.forest.vertices.idOf(row));
  }

  private arrival(row: number): Arrival {
    const { forest } = this.view;
    const sequence = forest.arrivalSequence(row);
    return { sequence, index: forest.arrivalIndex(row), time: this.arrivalTime(sequence) };
  }

  private arrivalTime(sequence: number): string {
    return isoTime(this.view.messages.through(sequence).time);
  }
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
