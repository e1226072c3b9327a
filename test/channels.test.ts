import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { createMemoryPair } from "../packages/core/src/channel/memory.ts";
import { createStreamChannel } from "../packages/core/src/channel/stream-channel.ts";
import { describeChannel, type Ends } from "./support/channel-suite.ts";

describeChannel("memory", (): Ends => {
  const [left, right] = createMemoryPair();
  return {
    left,
    right,
    vanish: () => void right[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: async () => {
      await left[Symbol.asyncDispose]();
      await right[Symbol.asyncDispose]();
    },
  };
});

describeChannel("byte streams", (closeMs): Ends => {
  const [there, back] = [new PassThrough(), new PassThrough()];
  return join(
    createStreamChannel(back, there, { closeMs }),
    createStreamChannel(there, back, { closeMs }),
    () => [there, back].forEach((stream) => stream.destroy()),
  );
});

describeChannel("a TCP socket", async (closeMs): Promise<Ends> => {
  const listener = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const [server] = (await once(listener, "connection")) as [Socket];
  listener.close();
  return join(
    createStreamChannel(client, client, { closeMs }),
    createStreamChannel(server, server, { closeMs }),
    () => server.resetAndDestroy(),
  );
});

describeChannel("the standard streams of child processes", (closeMs): Ends => {
  // One process carries each direction: what one end writes to its input, the other end reads from its output.
  const [there, back] = [spawn("cat"), spawn("cat")];
  return join(
    createStreamChannel(back.stdout, there.stdin, { closeMs }),
    createStreamChannel(there.stdout, back.stdin, { closeMs }),
    () => [there, back].forEach((child) => child.kill("SIGKILL")),
  );
});

function join(left: Ends["left"], right: Ends["right"], vanish: () => void): Ends {
  return {
    left,
    right,
    vanish,
    [Symbol.asyncDispose]: async () => {
      vanish();
      await left[Symbol.asyncDispose]();
      await right[Symbol.asyncDispose]();
    },
  };
}
