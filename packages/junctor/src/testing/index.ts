/** The public names of `junctor/testing`, by hand. A name that is not in this file is not public. */

export {
  accepted,
  cancelled,
  declined,
  type QuestionParams,
  sampled,
  type Script,
  type TestAnswers,
  type TestQuestion,
} from "./answers.ts";
export { createAskingRegistry } from "./asking-registry.ts";
export { connectForTest, type TestClient, type TestOptions } from "./connect-for-test.ts";
export { openCassette } from "./open-cassette.ts";
export { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";
