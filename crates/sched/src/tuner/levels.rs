//! The windows that the controller chooses from: 1, 2, 3 ... 8, 10, 11, 13, 16 ... 4096 tasks.

/// How many windows there are.
pub(crate) const LEVELS: usize = 44;

/// Tasks at once. From 8 on four steps are a factor of two.
const TASKS: [u32; LEVELS] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 23, 27, 32, 38, 45, 54, 64, 76, 91, 108, 128, 152,
    181, 215, 256, 304, 362, 431, 512, 609, 724, 861, 1024, 1218, 1448, 1722, 2048, 2435, 2896,
    3444, 4096,
];

/// How far to look for a better window: far first, then between.
pub(crate) const STEPS: [usize; 3] = [4, 2, 1];

/// The window of a level.
pub(crate) fn tasks(level: usize) -> u32 {
    TASKS[level]
}

/// The level nearest to so many tasks at once, by ratio.
pub(crate) fn nearest(tasks: f64) -> usize {
    let above = TASKS.partition_point(|window| f64::from(*window) < tasks).min(LEVELS - 1);
    let Some(below) = above.checked_sub(1) else { return above };
    let (low, high) = (f64::from(TASKS[below]), f64::from(TASKS[above]));
    if tasks * tasks < low * high {
        below
    } else {
        above
    }
}

/// The highest level that so many slots can fill.
pub(crate) fn highest(slots: u32) -> usize {
    TASKS.partition_point(|window| *window < slots).min(LEVELS - 1)
}

/// The level in the middle between one task and all slots, by ratio.
pub(crate) fn middle(slots: u32) -> usize {
    let below = |window: &u32| u64::from(*window) * u64::from(*window) < u64::from(slots);
    TASKS.partition_point(below).min(LEVELS - 1)
}

#[cfg(test)]
mod tests {
    //! The table is even, and the nearest level is the nearest.

    use super::*;

    #[test]
    fn four_steps_double_the_window() {
        for level in 1..LEVELS {
            let (low, high) = (tasks(level - 1), tasks(level));
            let even = 10 * high >= 11 * low && 10 * high <= 13 * low;
            assert!(even || high == low + 1, "{low}, {high}");
        }
        (7..LEVELS - 4).for_each(|level| {
            let doubled = tasks(level + 4).abs_diff(2 * tasks(level));
            assert!(20 * doubled <= 2 * tasks(level), "{} four steps on", tasks(level));
        });
    }

    #[test]
    fn the_nearest_level_by_ratio() {
        for level in 0..LEVELS {
            assert_eq!(nearest(f64::from(tasks(level))), level);
        }
        assert_eq!((nearest(0.2), nearest(1e9)), (0, LEVELS - 1));
        assert_eq!(tasks(nearest(29.3)), 27);
        assert_eq!(tasks(nearest(29.5)), 32);
    }

    #[test]
    fn ends_and_middle() {
        assert_eq!(tasks(highest(1)), 1);
        assert_eq!(tasks(highest(225)), 256);
        assert_eq!(tasks(highest(1_000_000)), 4096);
        assert_eq!([1, 4, 8, 225, 257].map(|slots| tasks(middle(slots))), [1, 2, 3, 16, 19]);
        assert_eq!(middle(u32::MAX), LEVELS - 1);
    }
}
