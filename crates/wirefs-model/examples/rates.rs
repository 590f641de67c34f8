//! tmp
use wirefs_model::*; use wirefs_model::posix::*;
fn main(){ let root=Seen{kind:wirefs_op::Kind::Directory,mode:0o755,nlink:2,uid:0,gid:0,size:0,atime:Default::default(),mtime:Default::default()};
 let mut m=std::collections::BTreeMap::new();
 for seed in 0..20 { let mut w=ModelWorld::new(&root,0o22); for op in Operation::sequence(seed,2500){ let d=format!("{op:?}"); let n=d.split(' ').next().unwrap().to_string(); let o=format!("{:?}",w.perform(&op)); let o=if o.starts_with("Failed"){o}else{ o.split(['(']).next().unwrap().to_string()}; let o = if o=="LeftOut"||o.starts_with("Failed"){o}else{"ok".into()}; *m.entry(n).or_insert_with(std::collections::BTreeMap::new).entry(o).or_insert(0)+=1; } }
 for (k,v) in m { println!("{k}: {v:?}"); } }
