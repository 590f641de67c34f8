use super::*;
use wirefs_blocks::id::WriterId;
use wirefs_blocks::store::MemoryStore;

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(3)).unwrap()
}

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("wirefs-save-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tree")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// A store with more blocks than one batch.
fn store() -> MemoryStore {
    let store = MemoryStore::new(1_400, 10_000);
    let blocks = (1..=700).map(|counter| (id(counter), Bytes::from(vec![counter as u8; counter as usize])));
    store.register(&blocks.collect::<Vec<_>>()).unwrap();
    store.switch_root(id(700)).unwrap();
    store
}

#[test]
fn saved_tree_is_loaded_unchanged() {
    let scratch = Scratch::new("whole");
    let saved = write(&store(), &scratch.file()).unwrap();
    assert_eq!(saved, Saved { payload_bytes: 1_400, root: id(700), blocks: 700, lost: 0 });
    let file = SavedFile::open(&scratch.file()).unwrap();
    assert_eq!(file.head(), saved);
    let other = MemoryStore::new(1_400, 10_000);
    file.load(&other).unwrap();
    assert_eq!(other.root().unwrap(), Some(id(700)));
    let ids = other.registered(None, usize::MAX);
    assert_eq!(ids, (1..=700).map(id).collect::<Vec<_>>());
    for (id, bytes) in fetch(&other, &ids) {
        assert_eq!(*bytes, vec![id.counter() as u8; id.counter() as usize]);
    }
}

#[test]
fn damage_is_detected_before_blocks_are_loaded() {
    let scratch = Scratch::new("damaged");
    write(&store(), &scratch.file()).unwrap();
    let whole = std::fs::read(scratch.file()).unwrap();
    let places = (0..whole.len()).step_by(7_919).chain([0, 9, 15, 19, whole.len() - 1]);
    for place in places {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x40;
        std::fs::write(scratch.file(), &damaged).unwrap();
        let found = SavedFile::open(&scratch.file());
        assert!(matches!(found, Err(SaveError::Damaged { .. })), "byte {place}: {found:?}");
    }
    for length in [0, 19, 20, 28, whole.len() / 2, whole.len() - 1] {
        std::fs::write(scratch.file(), &whole[..length]).unwrap();
        let found = SavedFile::open(&scratch.file());
        assert!(matches!(found, Err(SaveError::Damaged { .. })), "{length} bytes: {found:?}");
    }
    std::fs::write(scratch.file(), [&whole[..], b"more"].concat()).unwrap();
    assert!(SavedFile::open(&scratch.file()).is_err());
}

#[test]
fn existing_file_stays_when_saving_fails() {
    let scratch = Scratch::new("kept");
    std::fs::write(scratch.file(), "something else").unwrap();
    assert!(matches!(write(&MemoryStore::new(1_400, 10), &scratch.file()), Err(SaveError::NoRoot)));
    let rootless = Lossy { store: store(), lost: id(700) };
    assert!(matches!(write(&rootless, &scratch.file()), Err(SaveError::Lost(_))));
    assert_eq!(std::fs::read(scratch.file()).unwrap(), b"something else");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1, "no other file is left");
}

#[test]
fn lost_block_is_left_out_and_the_rest_is_saved() {
    let scratch = Scratch::new("lost");
    let saved = write(&Lossy { store: store(), lost: id(300) }, &scratch.file()).unwrap();
    assert_eq!((saved.blocks, saved.lost), (699, 1));
    let other = MemoryStore::new(1_400, 10_000);
    SavedFile::open(&scratch.file()).unwrap().load(&other).unwrap();
    let ids = other.registered(None, usize::MAX);
    assert_eq!(ids, (1..=700).filter(|&counter| counter != 300).map(id).collect::<Vec<_>>());
}

/// A store that lists all ids but has lost one block.
struct Lossy {
    store: MemoryStore,
    lost: BlockId,
}

impl BlockStore for Lossy {
    fn payload_bytes(&self) -> usize {
        self.store.payload_bytes()
    }
    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        self.store.register(blocks)
    }
    fn retrieve(
        &self,
        wanted: &Wanted,
        deliver: &mut dyn FnMut(BlockId, Result<Bytes, wirefs_blocks::store::Lost>),
    ) {
        self.store.retrieve(wanted, &mut |got, block| {
            deliver(got, if got == self.lost { Err(wirefs_blocks::store::Lost) } else { block });
        });
    }
    fn deregister(&self, ids: &[BlockId]) {
        self.store.deregister(ids);
    }
    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.store.registered(after, count_max)
    }
    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        self.store.root()
    }
    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault> {
        self.store.switch_root(root)
    }
    fn sync(&self) -> Result<(), StoreFault> {
        self.store.sync()
    }
    fn room(&self) -> wirefs_blocks::store::Room {
        self.store.room()
    }
}

#[test]
fn left_over_part_file_is_replaced_and_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("replaced");
    let (victim, part) = (scratch.0.join("victim"), scratch.0.join("tree.part"));
    std::fs::write(&victim, b"not ours").unwrap();
    std::os::unix::fs::symlink(&victim, &part).unwrap();
    write(&store(), &scratch.file()).unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"not ours");
    std::fs::write(&part, b"left over").unwrap();
    std::fs::set_permissions(&part, std::fs::Permissions::from_mode(0o644)).unwrap();
    write(&store(), &scratch.file()).unwrap();
    let found = std::fs::symlink_metadata(scratch.file()).unwrap();
    assert!(found.is_file());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    SavedFile::open(&scratch.file()).unwrap();
}

/// The example of a saved tree in `docs/FORMAT.md`: loaded, and saved again to the same bytes.
#[test]
fn saved_tree_of_the_format_page_is_loaded_and_saved_again() {
    let page = include_str!("../../../../docs/FORMAT.md");
    let (block, _) = page.split_once("```hex saved\n").unwrap().1.split_once("```").unwrap();
    let code = block.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    let bytes: Vec<u8> = code.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();

    let scratch = Scratch::new("page");
    std::fs::write(scratch.file(), &bytes).unwrap();
    let saved = SavedFile::open(&scratch.file()).unwrap();
    assert_eq!((saved.head().root, saved.head().blocks), (id(2), 2));
    let store = MemoryStore::new(1_400, 10);
    saved.load(&store).unwrap();
    write(&store, &scratch.file()).unwrap();
    assert_eq!(std::fs::read(scratch.file()).unwrap(), bytes);
}
