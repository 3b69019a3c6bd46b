/**
 * Whether a log still is the one that a position was taken from.
 *
 * Sequence numbers alone do not tell: a stream can be deleted and made again, its head purged, its tail lost
 * with the numbers given out a second time, all without a word from the server (notes: nats-server#6881 and
 * tried). So a position is a whole identity, and it is checked after a consumer is created and before the
 * first message is read.
 */
import { LogError } from '../dataflow/errors.ts';
import type { MessageIdentity } from '../dataflow/position.ts';
import type { Bus } from './ports.ts';

/** The position before the first message; `created` 0 stands for "any stream". */
export const LOG_START: MessageIdentity = { sequence: 0, time: 0n, created: 0n };

/** Gives the log's creation time if `position` is in it; otherwise throws a LogError that says what is wrong. */
export async function checkPosition(bus: Bus, stream: string, position: MessageIdentity): Promise<bigint> {
  const state = await bus.describe(stream);
  const at = `message ${position.sequence}`;
  if (state === undefined) {
    throw new LogError(
      'log-missing',
      `there is no stream ${stream}: create the graph, or restore the stream`,
    );
  }
  if (position.created !== 0n && state.created !== position.created) {
    throw new LogError(
      'log-recreated',
      `stream ${stream} was deleted and created again (${isoTime(state.created)}, before: ` +
        `${isoTime(position.created)}); what was counted through ${at} came from the old one. ` +
        'Restore the old stream, or remove the graph and create it again',
    );
  }
  if (state.first > position.sequence + 1) {
    throw new LogError(
      'log-truncated',
      `stream ${stream} now begins at message ${state.first}, but only ${at} and before were read: messages ` +
        `${position.sequence + 1} to ${state.first - 1} are gone. Restore them, or remove the graph and create it again`,
    );
  }
  if (state.last < position.sequence) {
    throw new LogError(
      'log-truncated',
      `stream ${stream} ends at message ${state.last}, but ${at} was read: its tail is lost. Either keep what was ` +
        `counted, by advancing the stream past it (nats stream purge ${stream} --seq ${position.sequence + 1}), ` +
        'or remove the graph and create it again',
    );
  }
  if (position.sequence >= state.first) {
    const message = await bus.message(stream, position.sequence);
    if (message === undefined || message.time !== position.time) {
      throw new LogError(
        'log-diverged',
        `${at} of stream ${stream} is not the one that was read (${
          message === undefined ? 'it is gone' : `stored ${isoTime(message.time)}`
        }, read: ${isoTime(position.time)}): the stream lost its tail and used the numbers again. Restore the ` +
          'stream, or remove the graph and create it again',
      );
    }
  }
  return state.created;
}

function isoTime(nanoseconds: bigint): string {
  return new Date(Number(nanoseconds / 1_000_000n)).toISOString();
}
