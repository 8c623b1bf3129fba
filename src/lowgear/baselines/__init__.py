"""What the paper compares against: students that imitate a large-only teacher.

`record` plays teachers and keeps their state-action pairs as `Demonstrations`; `clone` (behaviour cloning), `dagger`
and `gail` make students of any width from them. A student is a `Policy`, so everything that plays, prices or exports a
trained controller takes it as it is. Every `fit` trains P students as one program, each with its own seed and data.
"""
