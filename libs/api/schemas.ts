/** Every named schema, in the order in which the OpenAPI document lists them. */
import type { TSchema } from 'typebox';
import { Cluster, ClusterTask, Health, Instance, Readiness, Task } from './cluster.ts';
import { ComponentAnswer, ComponentsOrOne, ComponentsPage, MembersPage } from './component.ts';
import { Appended, Edge, EdgesBody, Rejection, SequenceRange } from './edges.ts';
import { Arrival, AsOf, Component, EdgeIndex, Fault, Sequence, Time, VertexId } from './fields.ts';
import { Graph, GraphList, GraphSettings, GraphStatus, Lag, PartitionStatus, Totals } from './graph.ts';
import {
  Partitioner,
  PartitionFigures,
  Partitions,
  PartitionVertices,
  Placement,
  Quality,
  RecentFigures,
} from './partitioner.ts';
import { Problem, ProblemCode, ProblemError } from './problem.ts';
import { RebuildRequest, Snapshot, SnapshotList, SnapshotRequest } from './snapshot.ts';
import {
  Connection,
  ExportRow,
  JoiningEdge,
  LookupAnswer,
  LookupItem,
  LookupRequest,
  Vertex,
} from './vertex.ts';

export const SCHEMAS: readonly TSchema[] = [
  VertexId,
  Sequence,
  EdgeIndex,
  Time,
  AsOf,
  Component,
  Arrival,
  Fault,
  Partitioner,
  Graph,
  GraphList,
  GraphSettings,
  Totals,
  Lag,
  PartitionStatus,
  GraphStatus,
  PartitionFigures,
  Quality,
  RecentFigures,
  Partitions,
  PartitionVertices,
  Placement,
  Snapshot,
  SnapshotList,
  SnapshotRequest,
  RebuildRequest,
  Edge,
  EdgesBody,
  Rejection,
  SequenceRange,
  Appended,
  Vertex,
  LookupRequest,
  LookupItem,
  LookupAnswer,
  JoiningEdge,
  Connection,
  ExportRow,
  ComponentAnswer,
  ComponentsPage,
  ComponentsOrOne,
  MembersPage,
  Task,
  Instance,
  ClusterTask,
  Cluster,
  Health,
  Readiness,
  ProblemCode,
  ProblemError,
  Problem,
];
