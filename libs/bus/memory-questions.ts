import type { Questions } from '../stage/ports.ts';

/** The in-memory twin of NatsQuestions. */
export class MemoryQuestions implements Questions {
  private readonly answers = new Map<string, Set<(question: Uint8Array) => Uint8Array>>();

  answer(subject: string, answer: (question: Uint8Array) => Uint8Array): () => void {
    const known = this.answers.get(subject) ?? new Set();
    this.answers.set(subject, known.add(answer));
    return () => known.delete(answer);
  }

  async ask(subject: string, question: Uint8Array): Promise<Uint8Array | undefined> {
    for (const answer of this.answers.get(subject) ?? []) {
      try {
        return answer(question);
      } catch {
        // Who cannot answer says nothing.
      }
    }
    return undefined;
  }
}
