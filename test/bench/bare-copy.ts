/**
 * The rival of the whole pipeline: the same payloads through two streams and nothing else. `copy` reads A and
 * appends to B, `sink` reads B; each ends after so many messages. It reads and appends as the product does.
 */
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';

const WINDOW = 64;
const [url, what, count] = [process.argv[2]!, process.argv[3]!, Number(process.argv[4])];
const connection = await connectNats({ url, name: `bench ${what}`, wait: true });
const bus = new NatsBus(connection);
const reader = await bus.read(what === 'copy' ? 'A' : 'B', 1);
const inFlight = new Set<Promise<unknown>>();
for (let seen = 0; seen < count; ) {
  for (const { payload } of await reader.next(1_000)) {
    seen += 1;
    if (what === 'sink') continue;
    const append = bus
      .append({ stream: 'B', subject: 'bare.B' }, payload, {})
      .finally(() => inFlight.delete(append));
    inFlight.add(append);
    if (inFlight.size >= WINDOW) await Promise.race(inFlight);
  }
}
await Promise.all(inFlight);
await reader.close();
await connection.close();
