use super::*;
use bytes::Bytes;
use wirefs_cache::PIECE_BYTES;
use wirefs_op::FileId;

/// A temporary directory for a test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("wirefs-disk_cache-{}-{name}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Dir(dir)
    }

    fn open(&self) -> DiskCache {
        DiskCache::open(&self.0, 4 * DISK_CACHE_BYTES_MIN).unwrap()
    }

    fn segments(&self) -> Vec<PathBuf> {
        let mut all = segment::all_in(&self.0).unwrap();
        all.sort();
        all.into_iter().map(|(_, path)| path).collect()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn clear_removes_all_pieces_permanently() {
    let dir = Dir::new("server");
    let piece = piece(1, 0, 100);
    let mut disk_cache = dir.open();
    put(&mut disk_cache, &piece);
    disk_cache.clear().unwrap();
    assert!(!has(&mut disk_cache, &piece) && dir.segments().is_empty());
    // Pieces of the new server are kept.
    put(&mut disk_cache, &piece);
    disk_cache.close().unwrap();
    assert!(has(&mut dir.open(), &piece));
}

fn piece(ino: u64, offset: u64, length: u32) -> CachePiece {
    CachePiece { file: FileId { fs: 0, ino, generation: 1 }, version: 5, offset, length }
}

fn data(piece: &CachePiece) -> Bytes {
    let byte = |at: u32| (u64::from(at) * 31 + piece.file.ino * 7 + piece.offset / PIECE_BYTES) as u8;
    (0..piece.length).map(byte).collect()
}

fn put(disk_cache: &mut DiskCache, piece: &CachePiece) {
    let Some(reserved) = disk_cache.reserve(piece).unwrap() else { return };
    reserved.write(piece, &data(piece)).unwrap();
    disk_cache.insert(piece, &reserved);
}

/// Returns whether a piece is cached and valid.
fn has(disk_cache: &mut DiskCache, piece: &CachePiece) -> bool {
    match disk_cache.find(piece) {
        CacheLookup::Hit(stored) => match stored.read(piece) {
            Some(read) => {
                assert_eq!(read, data(piece));
                disk_cache.count_hit();
                true
            }
            None => {
                disk_cache.evict_damaged(piece);
                false
            }
        },
        CacheLookup::Miss | CacheLookup::VersionMiss => false,
    }
}

#[test]
fn piece_is_found_by_file_version_and_offset() {
    let dir = Dir::new("found");
    let mut disk_cache = dir.open();
    let first = piece(1, 0, PIECE_BYTES as u32);
    put(&mut disk_cache, &first);
    assert!(has(&mut disk_cache, &first));
    assert!(matches!(disk_cache.find(&piece(1, PIECE_BYTES, 9)), CacheLookup::Miss));
    assert!(matches!(disk_cache.find(&piece(2, 0, 9)), CacheLookup::VersionMiss));
    assert!(matches!(disk_cache.find(&CachePiece { version: 6, ..first }), CacheLookup::VersionMiss));
    assert!(!has(&mut disk_cache, &CachePiece { length: 9, ..first }), "of another length");
    assert!(disk_cache.reserve(&first).unwrap().is_none(), "once is enough");
}

#[test]
fn pieces_survive_a_clean_end_and_a_crash() {
    let dir = Dir::new("again");
    let pieces: Vec<CachePiece> = (1..50).map(|ino| piece(ino, 0, 1000 + ino as u32)).collect();
    let (before, after) = pieces.split_at(20);
    let mut disk_cache = dir.open();
    before.iter().for_each(|piece| put(&mut disk_cache, piece));
    disk_cache.close().unwrap();
    assert!(dir.0.join("index").exists());
    let mut disk_cache = dir.open();
    assert!(!dir.0.join("index").exists(), "it counts once");
    assert!(before.iter().all(|piece| has(&mut disk_cache, piece)));
    after.iter().for_each(|piece| put(&mut disk_cache, piece));
    drop(disk_cache);
    let mut disk_cache = dir.open();
    assert!(pieces.iter().all(|piece| has(&mut disk_cache, piece)));
    assert_eq!(dir.segments().len(), 1, "a segment is filled on");
    assert_eq!(disk_cache.stats().damaged, 0);
}

#[test]
fn oldest_segments_are_evicted_within_the_limit() {
    let dir = Dir::new("room");
    let mut disk_cache = dir.open();
    let pieces: Vec<CachePiece> = (1..100).map(|ino| piece(ino, 0, PIECE_BYTES as u32)).collect();
    for piece in &pieces {
        put(&mut disk_cache, piece);
        let on_disk: u64 = dir.segments().iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(on_disk <= 4 * DISK_CACHE_BYTES_MIN, "{on_disk}");
    }
    assert!(has(&mut disk_cache, &pieces[98]));
    assert!(!has(&mut disk_cache, &pieces[0]));
    assert!(disk_cache.stats().bytes > 2 * DISK_CACHE_BYTES_MIN);
    disk_cache.close().unwrap();
    let disk_cache = DiskCache::open(&dir.0, DISK_CACHE_BYTES_MIN).unwrap();
    assert!(disk_cache.stats().bytes <= DISK_CACHE_BYTES_MIN, "a smaller limit counts from the start");
}

#[test]
fn any_wrong_byte_loses_its_piece_and_is_never_returned() {
    let dir = Dir::new("flipped");
    let pieces = [piece(1, 0, 40), piece(2, 0, 30), piece(3, 0, 20)];
    let mut disk_cache = dir.open();
    pieces.iter().for_each(|piece| put(&mut disk_cache, piece));
    disk_cache.close().unwrap();
    let (index, segment) = (dir.0.join("index"), dir.segments().remove(0));
    let (sound_index, sound) = (std::fs::read(&index).unwrap(), std::fs::read(&segment).unwrap());
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        for with_index in [true, false] {
            std::fs::write(&segment, &bytes).unwrap();
            if with_index {
                std::fs::write(&index, &sound_index).unwrap();
            }
            let mut disk_cache = dir.open();
            let found = pieces.iter().filter(|piece| has(&mut disk_cache, piece)).count();
            assert!(found < 3, "{at}");
            assert!(!with_index || (found == 2 && disk_cache.stats().damaged == 1), "{at}: {found}");
        }
    }
}

#[test]
fn truncated_segment_keeps_its_complete_pieces() {
    let dir = Dir::new("cut");
    let pieces = [piece(1, 0, 40), piece(2, 0, 30), piece(3, 0, 20)];
    let mut disk_cache = dir.open();
    pieces.iter().for_each(|piece| put(&mut disk_cache, piece));
    disk_cache.close().unwrap();
    let (index, segment) = (dir.0.join("index"), dir.segments().remove(0));
    let (sound_index, sound) = (std::fs::read(&index).unwrap(), std::fs::read(&segment).unwrap());
    for end in 0..sound.len() {
        std::fs::write(&segment, &sound[..end]).unwrap();
        std::fs::write(&index, &sound_index).unwrap();
        let mut disk_cache = dir.open();
        let whole = [64 + 40, 64 + 40 + 64 + 30].iter().filter(|whole| end >= **whole).count();
        assert_eq!(pieces.iter().filter(|piece| has(&mut disk_cache, piece)).count(), whole, "{end}");
        put(&mut disk_cache, &pieces[2]);
        assert!(has(&mut disk_cache, &pieces[2]), "new pieces are appended after complete ones");
    }
}

#[test]
fn damaged_index_is_rebuilt_from_the_segments() {
    let dir = Dir::new("index");
    let pieces = [piece(1, 0, 40), piece(2, 0, 30)];
    let mut disk_cache = dir.open();
    pieces.iter().for_each(|piece| put(&mut disk_cache, piece));
    disk_cache.close().unwrap();
    let index = dir.0.join("index");
    let sound = std::fs::read(&index).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        std::fs::write(&index, &bytes).unwrap();
        let mut disk_cache = dir.open();
        assert_eq!(disk_cache.stats().damaged, 1, "{at}");
        assert!(pieces.iter().all(|piece| has(&mut disk_cache, piece)), "{at}");
    }
}

#[test]
fn index_of_other_segments_returns_no_wrong_data() {
    let dir = Dir::new("other");
    let mut disk_cache = dir.open();
    put(&mut disk_cache, &piece(1, 0, 40));
    put(&mut disk_cache, &piece(2, 0, 40));
    disk_cache.close().unwrap();
    let index = std::fs::read(dir.0.join("index")).unwrap();
    std::fs::remove_file(dir.segments().remove(0)).unwrap();
    let mut disk_cache = dir.open();
    put(&mut disk_cache, &piece(2, 0, 40));
    put(&mut disk_cache, &piece(1, 0, 40));
    drop(disk_cache);
    std::fs::write(dir.0.join("index"), index).unwrap();
    let mut disk_cache = dir.open();
    assert!(!has(&mut disk_cache, &piece(1, 0, 40)), "another piece is at its location");
}
