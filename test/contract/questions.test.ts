/** What a gateway asks of questions, held against both twins. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryQuestions } from '../../libs/bus/memory-questions.ts';
import { connectNats } from '../../libs/bus/nats-bus.ts';
import { NatsQuestions } from '../../libs/bus/nats-questions.ts';
import type { Questions } from '../../libs/stage/ports.ts';
import { testNatsServer } from '../integration/harness/nats.ts';

const WAIT_MS = 300;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (answer: Uint8Array | undefined): string | undefined =>
  answer && new TextDecoder().decode(answer);

function contract(
  name: string,
  open: () => Promise<{ asking: Questions; answering: Questions; close: () => Promise<void> }>,
): void {
  describe(`questions on ${name}`, () => {
    let asking: Questions;
    let answering: Questions;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ asking, answering, close } = await open());
    });
    afterAll(() => close());

    /** The server knows of the subscription a moment later. */
    async function eventually(subject: string, question: string): Promise<string | undefined> {
      for (let attempt = 0; attempt < 50; attempt++) {
        const answer = await asking.ask(subject, bytes(question), WAIT_MS);
        if (answer !== undefined) return text(answer);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return undefined;
    }

    it('are answered by who listens, with the bytes of the question', async () => {
      const stop = answering.answer('q.one', (question) => bytes(`${text(question)}!`));
      expect(await eventually('q.one', 'é\u0000')).toBe('é\u0000!');
      stop();
    });

    it('have no answer where nobody listens, or not any more', async () => {
      expect(await asking.ask('q.none', bytes('x'), WAIT_MS)).toBeUndefined();
      const stop = answering.answer('q.two', () => bytes('here'));
      expect(await eventually('q.two', '')).toBe('here');
      stop();
      for (let attempt = 0; attempt < 50; attempt++) {
        if ((await asking.ask('q.two', bytes(''), WAIT_MS)) === undefined) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect.unreachable();
    });

    it('have no answer from who cannot give one', async () => {
      const stop = answering.answer('q.three', () => {
        throw new Error('not now');
      });
      expect(await asking.ask('q.three', bytes('x'), WAIT_MS)).toBeUndefined();
      stop();
    });
  });
}

contract('memory', async () => {
  const questions = new MemoryQuestions();
  return { asking: questions, answering: questions, close: async () => {} };
});

contract('NATS', async () => {
  const server = await testNatsServer();
  const [one, two] = [
    await connectNats({ url: server.url, name: 'asks', wait: true }),
    await connectNats({ url: server.url, name: 'answers', wait: true }),
  ];
  return {
    asking: new NatsQuestions(one),
    answering: new NatsQuestions(two),
    close: async () => {
      await one.close();
      await two.close();
      await server.stop();
    },
  };
});
