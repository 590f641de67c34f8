use super::*;
use bytes::Bytes;
use wirefs_cache::PIECE_BYTES;
use wirefs_op::FileId;

/// A directory of its own for each test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("wirefs-contents-{}-{name}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Dir(dir)
    }

    fn open(&self) -> Contents {
        Contents::open(&self.0, 4 * CONTENTS_BYTES_MIN).unwrap()
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
fn contents_of_another_server_are_gone_for_good() {
    let dir = Dir::new("server");
    let piece = piece(1, 0, 100);
    let mut contents = dir.open();
    put(&mut contents, &piece);
    contents.clear().unwrap();
    assert!(!has(&mut contents, &piece) && dir.segments().is_empty());
    // Those of the next are kept.
    put(&mut contents, &piece);
    contents.close().unwrap();
    assert!(has(&mut dir.open(), &piece));
}

fn piece(ino: u64, offset: u64, length: u32) -> Piece {
    Piece { file: FileId { fs: 0, ino, generation: 1 }, version: 5, offset, length }
}

fn data(piece: &Piece) -> Bytes {
    let byte = |at: u32| (u64::from(at) * 31 + piece.file.ino * 7 + piece.offset / PIECE_BYTES) as u8;
    (0..piece.length).map(byte).collect()
}

fn put(contents: &mut Contents, piece: &Piece) {
    let Some(reserved) = contents.reserve(piece).unwrap() else { return };
    reserved.write(piece, &data(piece)).unwrap();
    contents.insert(piece, &reserved);
}

/// Whether a piece is there, sound and right.
fn has(contents: &mut Contents, piece: &Piece) -> bool {
    match contents.find(piece) {
        Found::Here(stored) => match stored.read(piece) {
            Some(read) => {
                assert_eq!(read, data(piece));
                contents.was_sound();
                true
            }
            None => {
                contents.was_damaged(piece);
                false
            }
        },
        Found::Missing | Found::Nothing => false,
    }
}

#[test]
fn what_is_put_there_is_found_by_file_version_and_offset() {
    let dir = Dir::new("found");
    let mut contents = dir.open();
    let first = piece(1, 0, PIECE_BYTES as u32);
    put(&mut contents, &first);
    assert!(has(&mut contents, &first));
    assert!(matches!(contents.find(&piece(1, PIECE_BYTES, 9)), Found::Missing));
    assert!(matches!(contents.find(&piece(2, 0, 9)), Found::Nothing));
    assert!(matches!(contents.find(&Piece { version: 6, ..first }), Found::Nothing));
    assert!(!has(&mut contents, &Piece { length: 9, ..first }), "of another length");
    assert!(contents.reserve(&first).unwrap().is_none(), "once is enough");
}

#[test]
fn it_is_there_after_an_end_in_order_and_after_a_crash() {
    let dir = Dir::new("again");
    let pieces: Vec<Piece> = (1..50).map(|ino| piece(ino, 0, 1000 + ino as u32)).collect();
    let (before, after) = pieces.split_at(20);
    let mut contents = dir.open();
    before.iter().for_each(|piece| put(&mut contents, piece));
    contents.close().unwrap();
    assert!(dir.0.join("index").exists());
    let mut contents = dir.open();
    assert!(!dir.0.join("index").exists(), "it counts once");
    assert!(before.iter().all(|piece| has(&mut contents, piece)));
    after.iter().for_each(|piece| put(&mut contents, piece));
    drop(contents);
    let mut contents = dir.open();
    assert!(pieces.iter().all(|piece| has(&mut contents, piece)));
    assert_eq!(dir.segments().len(), 1, "a segment is filled on");
    assert_eq!(contents.figures().damaged, 0);
}

#[test]
fn the_oldest_make_room_and_no_more_is_on_disk_than_allowed() {
    let dir = Dir::new("room");
    let mut contents = dir.open();
    let pieces: Vec<Piece> = (1..100).map(|ino| piece(ino, 0, PIECE_BYTES as u32)).collect();
    for piece in &pieces {
        put(&mut contents, piece);
        let on_disk: u64 = dir.segments().iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(on_disk <= 4 * CONTENTS_BYTES_MIN, "{on_disk}");
    }
    assert!(has(&mut contents, &pieces[98]));
    assert!(!has(&mut contents, &pieces[0]));
    assert!(contents.figures().bytes > 2 * CONTENTS_BYTES_MIN);
    contents.close().unwrap();
    let contents = Contents::open(&dir.0, CONTENTS_BYTES_MIN).unwrap();
    assert!(contents.figures().bytes <= CONTENTS_BYTES_MIN, "a smaller limit counts from the start");
}

#[test]
fn a_wrong_byte_anywhere_costs_what_it_hits_and_is_never_handed_out() {
    let dir = Dir::new("flipped");
    let pieces = [piece(1, 0, 40), piece(2, 0, 30), piece(3, 0, 20)];
    let mut contents = dir.open();
    pieces.iter().for_each(|piece| put(&mut contents, piece));
    contents.close().unwrap();
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
            let mut contents = dir.open();
            let found = pieces.iter().filter(|piece| has(&mut contents, piece)).count();
            assert!(found < 3, "{at}");
            assert!(!with_index || (found == 2 && contents.figures().damaged == 1), "{at}: {found}");
        }
    }
}

#[test]
fn a_segment_that_was_cut_keeps_what_is_whole() {
    let dir = Dir::new("cut");
    let pieces = [piece(1, 0, 40), piece(2, 0, 30), piece(3, 0, 20)];
    let mut contents = dir.open();
    pieces.iter().for_each(|piece| put(&mut contents, piece));
    contents.close().unwrap();
    let (index, segment) = (dir.0.join("index"), dir.segments().remove(0));
    let (sound_index, sound) = (std::fs::read(&index).unwrap(), std::fs::read(&segment).unwrap());
    for end in 0..sound.len() {
        std::fs::write(&segment, &sound[..end]).unwrap();
        std::fs::write(&index, &sound_index).unwrap();
        let mut contents = dir.open();
        let whole = [64 + 40, 64 + 40 + 64 + 30].iter().filter(|whole| end >= **whole).count();
        assert_eq!(pieces.iter().filter(|piece| has(&mut contents, piece)).count(), whole, "{end}");
        put(&mut contents, &pieces[2]);
        assert!(has(&mut contents, &pieces[2]), "what comes next is put behind what is whole");
    }
}

#[test]
fn a_damaged_index_is_dropped_and_the_segments_looked_through() {
    let dir = Dir::new("index");
    let pieces = [piece(1, 0, 40), piece(2, 0, 30)];
    let mut contents = dir.open();
    pieces.iter().for_each(|piece| put(&mut contents, piece));
    contents.close().unwrap();
    let index = dir.0.join("index");
    let sound = std::fs::read(&index).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        std::fs::write(&index, &bytes).unwrap();
        let mut contents = dir.open();
        assert_eq!(contents.figures().damaged, 1, "{at}");
        assert!(pieces.iter().all(|piece| has(&mut contents, piece)), "{at}");
    }
}

#[test]
fn an_index_of_other_segments_leads_to_nothing_wrong() {
    let dir = Dir::new("other");
    let mut contents = dir.open();
    put(&mut contents, &piece(1, 0, 40));
    put(&mut contents, &piece(2, 0, 40));
    contents.close().unwrap();
    let index = std::fs::read(dir.0.join("index")).unwrap();
    std::fs::remove_file(dir.segments().remove(0)).unwrap();
    let mut contents = dir.open();
    put(&mut contents, &piece(2, 0, 40));
    put(&mut contents, &piece(1, 0, 40));
    drop(contents);
    std::fs::write(dir.0.join("index"), index).unwrap();
    let mut contents = dir.open();
    assert!(!has(&mut contents, &piece(1, 0, 40)), "another piece is at its spot");
}
