//! The slab: entries come and go, keys never come again.

use std::collections::{BTreeMap, BTreeSet};

use graph::slab::{Key, Slab};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_slab_is_a_map_whose_keys_never_come_again(
        ops in prop::collection::vec((any::<bool>(), any::<u16>()), 0..200),
    ) {
        let mut slab = Slab::default();
        let mut map = BTreeMap::new();
        let mut dead: BTreeSet<Key> = BTreeSet::new();
        for (number, (insert, at)) in ops.into_iter().enumerate() {
            if insert || map.is_empty() {
                let key = slab.insert(number);
                prop_assert!(!dead.contains(&key), "{key:?} came again");
                prop_assert_eq!(map.insert(key, number), None);
            } else {
                let key = *map.keys().nth(usize::from(at) % map.len()).unwrap();
                prop_assert_eq!(slab.remove(key), map.remove(&key));
                dead.insert(key);
            }
            prop_assert_eq!(slab.len(), map.len());
            prop_assert_eq!(slab.is_empty(), map.is_empty());
            let listed: BTreeMap<Key, usize> = slab.iter().map(|(key, at)| (key, *at)).collect();
            prop_assert_eq!(&listed, &map);
            for key in &dead {
                prop_assert_eq!(slab.get(*key), None);
                prop_assert_eq!(slab.get_mut(*key), None);
                prop_assert_eq!(slab.remove(*key), None);
            }
        }
    }

    #[test]
    fn a_key_is_one_number(index in any::<u32>(), generation in any::<u32>()) {
        let key = Key { index, generation };
        prop_assert_eq!(Key::from_bits(key.to_bits()), key);
    }
}

#[test]
fn places_are_used_again() {
    let mut slab = Slab::default();
    for number in 0..1000 {
        let key = slab.insert(number);
        assert_eq!(key, Key { index: 0, generation: number });
        assert_eq!(slab.remove(key), Some(number));
    }
}

#[test]
fn a_key_of_elsewhere_finds_nothing() {
    let mut slab = Slab::default();
    slab.insert('a');
    assert_eq!(slab.get(Key { index: 1, generation: 0 }), None);
    assert_eq!(slab.get(Key { index: 0, generation: 1 }), None);
    assert_eq!(slab.remove(Key { index: u32::MAX, generation: u32::MAX }), None);
}

#[test]
fn a_retired_entry_leaves_its_memory_and_nothing_else() {
    let mut slab: Slab<Vec<u8>> = Slab::default();
    let first = slab.insert(Vec::from([1, 2, 3]));
    let mut memory = slab.lend(first).expect("it is there");
    assert!(slab.contains(first) && slab.get(first).is_none(), "lent, and not put back yet");
    memory.clear();
    slab.retire(first, memory);
    assert_eq!((slab.get(first), slab.contains(first), slab.len()), (None, false, 0));
    assert_eq!(slab.iter().count(), 0);

    let (second, memory) = slab.begin();
    let memory = memory.expect("left by the first");
    assert!(memory.is_empty() && memory.capacity() >= 3);
    assert!(slab.contains(second) && slab.get(second).is_none(), "begun, and not put yet");
    slab.put(second, memory);
    assert_eq!(slab.get(second), Some(&Vec::new()));
    assert!(!slab.contains(first), "keys never come again");
}

#[test]
fn a_retired_key_is_not_retired_twice() {
    let mut slab = Slab::default();
    let key = slab.insert('a');
    slab.retire(key, 'a');
    let again = slab.insert('b');
    slab.retire(key, 'c');
    assert_eq!(slab.lend(key), None);
    assert_eq!(slab.remove(again), Some('b'));
}
