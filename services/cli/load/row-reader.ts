/** What reads one format: takes the content in chunks, gives its rows to the batches. */

export interface RowReader {
  /**
   * `isLast` says that the content ends here. Throws, with all whole rows read, where it cannot go on or ends too
   * early. The chunk must not change afterwards.
   */
  push(chunk: Uint8Array, isLast: boolean): void;
}
