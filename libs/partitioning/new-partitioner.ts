/** From a config to the partitioner. */
import { fixedCapacity, growingCapacity, growingWholeCapacity } from './capacity.ts';
import { Dbh } from './dbh.ts';
import { EdgeHash } from './edge-hash.ts';
import type { EdgePartitioner } from './edge-partitioner.ts';
import { FennelRule } from './fennel.ts';
import { Greedy } from './greedy.ts';
import { Grid } from './grid.ts';
import { Hdrf } from './hdrf.ts';
import { LdgRule } from './ldg.ts';
import { OwnerPartitioner } from './owners.ts';
import type { PartitionerConfig } from './partitioner-config.ts';

/** A partitioner that has placed nothing yet. The config is one that was read, and `partsProblem` has no objection. */
export function newPartitioner(config: PartitionerConfig, parts: number): EdgePartitioner {
  switch (config.algorithm) {
    case 'hash':
      return new EdgeHash(parts);
    case 'grid':
      return new Grid(parts);
    case 'dbh':
      return new Dbh(parts);
    case 'greedy':
      return new Greedy(parts);
    case 'hdrf': {
      const { lambda, epsilon, slack, capMin } = config;
      return new Hdrf(parts, { lambda, epsilon, capacity: growingWholeCapacity({ parts, slack, capMin }) });
    }
    case 'ldg': {
      const { slack, capMin, vertices } = config;
      const capacity =
        vertices === undefined
          ? growingCapacity({ parts, slack, capMin })
          : fixedCapacity(parts, slack, vertices);
      return new OwnerPartitioner(parts, new LdgRule(), capacity);
    }
    case 'fennel': {
      const { penalty, slack, capMin, vertices, edges } = config;
      if (vertices === undefined || edges === undefined) {
        const rule = new FennelRule({ parts, penalty, announced: undefined });
        return new OwnerPartitioner(parts, rule, growingCapacity({ parts, slack, capMin }));
      }
      const rule = new FennelRule({ parts, penalty, announced: { vertices, edges } });
      return new OwnerPartitioner(parts, rule, fixedCapacity(parts, slack, vertices));
    }
  }
}
