use super::*;

fn file() -> Arc<OpenFile> {
    let fd = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    OpenFile::new(fd, FileId { fs: 0, ino: 1, generation: 1 }, Kind::File, Access::READ)
}

/// Keeps as many files as the session gets.
fn fill(files: &OpenFiles, file: &Arc<OpenFile>) -> usize {
    std::iter::from_fn(|| files.insert(file).filter(|fd| *fd != NOFD)).count()
}

// S-187
#[test]
fn greedy_client_leaves_open_files_to_others_in_whatever_sessions_it_takes_them() {
    let (budget, file) = (Budget::with_max(64), file());
    let greedy = ClientBudget::new(Arc::clone(&budget));
    let sessions: Vec<OpenFiles> = (0..4).map(|_| OpenFiles::new(Arc::clone(&greedy))).collect();
    let kept: usize = sessions.iter().map(|session| fill(session, &file)).sum();
    assert_eq!(kept, 32);
    // A lock needs a descriptor, too.
    assert!(greedy.take().is_none());
    let second = OpenFiles::new(ClientBudget::new(Arc::clone(&budget)));
    assert_eq!(fill(&second, &file), 16);
    let honest = OpenFiles::new(ClientBudget::new(Arc::clone(&budget)));
    assert!(honest.insert(&file).is_some() && honest.budget().take().is_some());
    drop(sessions);
    assert!(fill(&second, &file) > 8, "closed files are free for all");
}
