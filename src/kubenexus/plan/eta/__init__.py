"""When waiting jobs are expected to start: the queue is played forward under drawn runtimes."""
