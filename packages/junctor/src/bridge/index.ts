export { abandonedCall, abandonedTask, notParked, toCallerError, toPageQuestions } from "./caller-error.ts";
export { isParkedState, type ParkedCallStatus, Parking, type ParkingOptions } from "./parking.ts";
export {
  arrived,
  followedAt,
  type FollowedState,
  isFollowedState,
  unwrapState,
  wrapState,
} from "./wrapped-state.ts";
