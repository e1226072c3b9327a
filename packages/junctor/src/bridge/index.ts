export { abandonedCall, abandonedTask, notParked } from "./abandoned.ts";
export { toCallerError, toVisits } from "./caller-error.ts";
export { isParkedState, type ParkedFacts, Parking, type ParkingOptions } from "./parking.ts";
export { arrived, heldAt, type HeldState, isHeldState, unwrapState, wrapState } from "./wrapped-state.ts";
