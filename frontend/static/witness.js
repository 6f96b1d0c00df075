// On every page: an alarm does not go away because somebody looks at another page.
import { showAlarm } from "./alarm.js";

showAlarm();
