export {
  askDaemon,
  compareBuilds,
  findDaemon,
  forgetStart,
  homeFolder,
  joinDaemon,
  listRunPlaces,
  openRunPlace,
  placeHash,
  type RunPlace,
  type StartedDaemon,
  userConfig,
} from "./find-daemon.ts";
export { runFront } from "./front.ts";
export { type ControlRequest, type GreetedFront, greetFront, type Introduction } from "./hello.ts";
