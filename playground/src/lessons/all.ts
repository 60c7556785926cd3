// The seven lessons.

import { bufferbloat } from "./bufferbloat.ts";
import { fairness } from "./fairness.ts";
import type { Lesson } from "./lesson.ts";
import { pathDies } from "./path_dies.ts";
import { remedies } from "./remedies.ts";
import { schedulers } from "./schedulers.ts";
import { slow3g } from "./slow_3g.ts";
import { stacks } from "./stacks.ts";

export const LESSONS: readonly Lesson[] = [
  slow3g,
  remedies,
  schedulers,
  bufferbloat,
  fairness,
  pathDies,
  stacks,
];
