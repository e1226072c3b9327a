export { abandonedCall, abandonedTask, notParked } from "./abandoned.ts";
export { toCallerError, toVisits } from "./caller-error.ts";
export { isParkedState, type ParkedFacts, Parking, type ParkingOptions } from "./parking.ts";
export {
  arrived,
  followedAt,
  type FollowedState,
  isFollowedState,
  unwrapState,
  wrapState,
} from "./wrapped-state.ts";
