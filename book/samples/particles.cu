// Moves particles for one step of time.
struct Particle {
    float x, y, z, vx, vy, vz;
};

__global__ void move(Particle* particles, float dt) {
    Particle& p = particles[blockIdx.x * blockDim.x + threadIdx.x];
    p.x += dt * p.vx;
    p.y += dt * p.vy;
    p.z += dt * p.vz;
}
