/** Schedules that found something once, in the product or in a mutant of it: they are run first, always. */
export const SEEDS: readonly { readonly seed: number; readonly found: string }[] = [
  { seed: 4335, found: 'a generation ended before what its lost logs had handed on' },
  { seed: 5073, found: 'a log that was emptied under a reader, and nobody said so' },
  { seed: 215, found: 'two marks behind one message, had in the wrong order' },
  { seed: 9, found: 'a rebuilt graph that kept the tasks of before' },
  { seed: 222, found: 'a reader that waited for ever behind the lost end of its log' },
  { seed: 611, found: 'a snapshot without the view, whose lease had moved' },
  { seed: 105, found: 'a state damaged on disk that was never stored' },
  { seed: 124, found: 'half a message that counted as a whole one' },
  { seed: 207, found: 'another EDGES that was taken for the one of before' },
  { seed: 550, found: 'a damaged chunk in a snapshot' },
];
