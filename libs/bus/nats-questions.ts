/** Questions as plain NATS requests: no stream holds them, and where nobody listens the server says so at once. */
import type { NatsConnection } from 'nats';
import type { Questions } from '../stage/ports.ts';

export class NatsQuestions implements Questions {
  private readonly connection: NatsConnection;

  constructor(connection: NatsConnection) {
    this.connection = connection;
  }

  answer(subject: string, answer: (question: Uint8Array) => Uint8Array): () => void {
    const subscription = this.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) return;
        try {
          message.respond(answer(message.data));
        } catch {
          // Who cannot answer says nothing.
        }
      },
    });
    return () => subscription.unsubscribe();
  }

  async ask(subject: string, question: Uint8Array, timeoutMs: number): Promise<Uint8Array | undefined> {
    try {
      return (await this.connection.request(subject, question, { timeout: timeoutMs })).data;
    } catch {
      // No responders, no answer in time, or no connection: there is no answer, whichever it is.
      return undefined;
    }
  }
}
