export {
  askDaemon,
  compareBuilds,
  findDaemon,
  forgetStart,
  joinDaemon,
  type StartedDaemon,
} from "./find-daemon.ts";
export { runFront } from "./front.ts";
export { type ControlRequest, type GreetedFront, greetFront, type Introduction } from "./hello.ts";
export {
  homeFolder,
  listRunPlaces,
  openRunPlace,
  placeHash,
  type RunPlace,
  userConfig,
} from "./run-folder.ts";
